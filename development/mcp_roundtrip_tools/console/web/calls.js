// Carries out calls: sends rounds, follows states without questions, and collects what the server recorded.

import { announce } from "./dom.js";
import { withoutBodies } from "./exchange.js";
import { awaitNews } from "./news.js";
import { isAwaited, outcomeOf, resultOf, stateOf } from "./rounds.js";

/** Rounds without a question that follow each other, before the user decides whether to go on. */
const MAX_FOLLOWED = 60;

/** Outcome of a round -> words. */
const OUTCOMES = {
  asking: "asks a question", continue: "continues", task: "became a task", completed: "completed", failed: "failed",
};

let lastId = 0;

export function createCalls({ store, client, api }) {
  /** Start a call of a feature and send its first round. Return the call at once. */
  function start({ kind, name, feature, arguments: given = {}, values = given }) {
    const profile = structuredClone(store.state.profile);
    const call = { id: `c${++lastId}`, kind, name, feature, arguments: given, values, profile, rounds: [], taskUpdates: [] };
    store.update({ calls: [...store.state.calls, call] });
    sendRound(call);
    return call;
  }

  /**
   * Send a round of a call: append it to `call.rounds`, and follow the response. `after` is the round that this one
   * follows: it sends the state of that round, as the same client. `followed`: how many rounds without a question came
   * directly before this one.
   */
  async function sendRound(call, { after, answers = {}, experiment, followed = 0, ...sent } = {}) {
    if (followed === 0) awaitNews();
    const { requestState, profile, arguments: given } = { ...following(call, after), ...sent };
    const number = call.rounds.length + 1;
    const branch = experiment === undefined ? after?.branch : number;
    const abort = new AbortController();
    const round = {
      number, answers, arguments: given, sentState: requestState ?? null, profile, abort, request: null, response: null,
      exchangeId: null, startedAtMs: Date.now(), durationMs: null, exchange: null, state: null,
      follows: after?.number ?? null, ...(experiment && { experiment }), ...(branch && { branch }),
    };
    call.rounds.push(round);
    store.notify(`call:${call.id}`);
    const [method, params] = requestOf(call, given, answers, requestState);
    const onRequest = (request) => { round.request = request; };
    const options = { profile, tool: call.feature, signal: abort.signal, onRequest };
    Object.assign(round, await client.exchange(method, params, options));
    record(call, round);
    const goesOn = outcomeOf(round) === "continue" && !round.isStopped && followed < MAX_FOLLOWED;
    if (goesOn) await sendRound(call, { after: round, followed: followed + 1 });
    else conclude(call, round);
  }

  function conclude(call, round) {
    const outcome = outcomeOf(round);
    if (outcome === "task" && round.branch === undefined) call.taskId = resultOf(round).taskId;
    store.notify(`call:${call.id}`);
    const names = [call.name, `round ${round.number}`, round.experiment].filter(Boolean).join(", ");
    announce(`${names}: ${OUTCOMES[outcome]}`);
  }

  /** Fetch what the server recorded of a round, and the decoded state that it returned. */
  async function record(call, round) {
    const notify = () => store.notify(`call:${call.id}`);
    const exchange = round.exchangeId === null ? Promise.resolve() : api.exchange(round.exchangeId)
      .then((found) => { round.exchange = withoutBodies(found); }, () => {}); // only the newest are kept
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

  /** Stop waiting for responses. */
  function stop(call) {
    awaitNews();
    for (const round of call.rounds.filter(isAwaited)) {
      round.isStopped = true;
      round.abort.abort();
    }
  }

  return { start, sendRound, stop };
}

/** Return what a round sends that follows another one, or that is the first. */
function following(call, after) {
  if (after === undefined) return { profile: call.profile, arguments: call.arguments };
  return { requestState: stateOf(after) ?? undefined, profile: after.profile, arguments: after.arguments };
}

/** Return the method and the params of a round of a call. */
function requestOf(call, given, answers, requestState) {
  const retry = {
    ...(Object.keys(answers).length > 0 ? { inputResponses: answers } : {}),
    ...(requestState === undefined ? {} : { requestState }),
  };
  switch (call.kind) {
    case "tool": return ["tools/call", { name: call.name, arguments: given, ...retry }];
    case "prompt": return ["prompts/get", { name: call.name, arguments: given, ...retry }];
    default: return ["resources/read", { uri: call.name, ...retry }];
  }
}
