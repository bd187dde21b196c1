// Carries out calls: sends rounds, follows states without questions, and collects what the server recorded.

import { announce } from "./dom.js";
import { withoutBodies } from "./exchange.js";

/** Rounds without a question that follow each other, before the user decides whether to go on. */
const MAX_FOLLOWED = 60;
const RECORD_DELAYS_MS = [0, 60, 150, 400, 1000];

let lastId = 0;

export function createCalls({ store, client, api }) {
  /** Start a call of a feature and send its first round. Return the call at once. */
  function start({ kind, name, feature = null, arguments: given = {}, values = given }) {
    const profile = structuredClone(store.state.profile);
    const call = {
      id: `c${++lastId}`, kind, name, feature, arguments: given, values, profile, rounds: [], status: "running",
      task: null, taskUpdates: [],
    };
    store.update({ calls: [...store.state.calls, call] });
    sendRound(call);
    return call;
  }

  /**
   * Send a round of a call: append it to `call.rounds`, and follow the response. Return the round when its
   * response is there.
   * @param {Call} call
   * @param {{answers?: Object, requestState?: string, profile?: Profile, experiment?: string, followed?: number}} options
   *     `followed`: how many rounds without a question came directly before this one
   */
  async function sendRound(call, { answers = {}, requestState, profile = call.profile, experiment, followed = 0 } = {}) {
    const abort = new AbortController();
    const round = {
      number: call.rounds.length + 1, answers, sentState: requestState ?? null, profile, abort, request: null, response: null,
      exchangeId: null, startedAtMs: Date.now(), durationMs: null, exchange: null, state: null,
      ...(experiment ? { experiment } : {}),
    };
    call.rounds.push(round);
    call.status = "running";
    store.notify(`call:${call.id}`);
    const [method, params] = requestOf(call, answers, requestState);
    const onRequest = (request) => { round.request = request; };
    const options = { profile, tool: call.feature, signal: abort.signal, onRequest };
    Object.assign(round, await client.exchange(method, params, options));
    const goesOn = outcomeOf(round) === "continue" && !abort.signal.aborted && followed < MAX_FOLLOWED;
    conclude(call, round, goesOn);
    record(call, round);
    if (goesOn) await sendRound(call, { requestState: stateOf(round), profile, followed: followed + 1 });
    return round;
  }

  /** Experiments can send several rounds at once: the call runs until the last of them has its response. */
  function conclude(call, round, goesOn) {
    const outcome = outcomeOf(round);
    if (goesOn || call.rounds.some(isAwaited)) call.status = "running";
    else call.status = outcome === "continue" || round.abort.signal.aborted ? "stopped" : outcome;
    if (outcome === "task") call.taskId = resultOf(round).taskId;
    store.notify(`call:${call.id}`);
    if (call.status !== "running") announce(`${call.name}, round ${round.number}: ${describeOutcome(outcome)}`);
  }

  /** Fetch what the server recorded of a round, and the decoded state that it returned. */
  async function record(call, round) {
    const notify = () => store.notify(`call:${call.id}`);
    const exchange = fetchExchange(round.exchangeId).then((found) => { round.exchange = found && withoutBodies(found); }, () => {});
    const state = decode(round).then(
      (found) => { round.state = found; },
      (error) => { round.state = { error: error.message, ...(error.body ?? {}) }; });
    await Promise.allSettled([exchange.then(notify), state.then(notify)]);
  }

  /** Decode the state that a round returned. For a round that ended the call, decode the one that it received. */
  async function decode(round) {
    const [returned, received] = [stateOf(round), round.sentState];
    if (returned !== null) return api.decodeState(returned, received ?? undefined);
    if (received === null) return null;
    const found = await api.decodeState(received, received);
    if (round.error) return { ...found, isReceived: true }; // refused: no code ran
    const answered = Object.entries(round.answers).map(([key, value]) =>
      ({ key, kind: "answer", mark: "answered", value, bytes: JSON.stringify(value).length }));
    const replayed = found.journal.filter(({ mark }) => mark !== "asked");
    return { ...found, journal: [...replayed, ...answered], isReceived: true };
  }

  async function fetchExchange(id) {
    if (id === null) return null;
    for (const delay of RECORD_DELAYS_MS) {
      if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
      try {
        return await api.exchange(id);
      } catch (error) {
        if (error.status !== 404) throw error;
      }
    }
    return null;
  }

  /** Answer the questions of a round with the state that it returned, as the client that it asked. */
  function answer(call, round, answers, experiment) {
    return sendRound(call, { answers, requestState: stateOf(round) ?? undefined, profile: round.profile, experiment });
  }

  /** Add calls of an earlier visit of the page. */
  function restore(calls) {
    lastId = Math.max(lastId, ...calls.map(({ id }) => Number(id.slice(1))));
    store.update({ calls: [...calls, ...store.state.calls] });
    for (const call of calls) {
      for (const round of call.rounds.filter((each) => each.exchange === null && each.exchangeId !== null)) record(call, round);
    }
  }

  /** Stop waiting for responses. */
  function stop(call) {
    for (const round of call.rounds.filter(isAwaited)) round.abort.abort();
  }

  return { start, sendRound, answer, restore, stop };
}

/** Return the method and the params of a round of a call. */
export function requestOf(call, answers, requestState) {
  const retry = {
    ...(Object.keys(answers).length > 0 ? { inputResponses: answers } : {}),
    ...(requestState === undefined ? {} : { requestState }),
  };
  switch (call.kind) {
    case "tool": return ["tools/call", { name: call.name, arguments: call.arguments, ...retry }];
    case "prompt": return ["prompts/get", { name: call.name, arguments: call.arguments, ...retry }];
    default: return ["resources/read", { uri: call.name, ...retry }];
  }
}

/** Return the result of a round's response, or null. */
export const resultOf = (round) => round.response?.body?.result ?? null;

/** Return the requestState that a round's response carries, or null. */
export const stateOf = (round) => resultOf(round)?.requestState ?? null;

/** Return the input requests of a round's response by key; empty if it asks nothing. */
export const questionsOf = (round) =>
  (resultOf(round)?.resultType === "input_required" ? resultOf(round).inputRequests ?? {} : {});

const isAwaited = (round) => round.durationMs === null;

/** Return the latest round that answers the questions of a round; undefined if there is none yet. */
export function answeringRound(call, round) {
  const state = stateOf(round);
  return call.rounds.findLast((each) =>
    each.number > round.number && each.sentState === state && Object.keys(each.answers).length > 0);
}

/** Return how a round ended: null (not yet), "asking", "continue", "task", "completed" or "failed". */
export function outcomeOf(round) {
  if (isAwaited(round)) return null;
  const result = resultOf(round);
  if (round.error || result === null) return "failed";
  if (result.resultType === "input_required") return Object.keys(questionsOf(round)).length > 0 ? "asking" : "continue";
  if (result.resultType === "task") return "task";
  return result.isError ? "failed" : "completed";
}

/** Return an outcome in words. */
export function describeOutcome(outcome) {
  return {
    asking: "asks a question", continue: "continues", task: "became a task", completed: "completed",
    failed: "failed",
  }[outcome] ?? "waiting";
}
