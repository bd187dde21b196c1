// Reads what was sent and received in a call, for the texts of "copy as". Everything comes from the wire.

import { ownRounds, questionsOf } from "../rounds.js";

const ENGINE_MEMBERS = ["_meta", "inputResponses", "requestState"];

/** The rounds of the call as its client played it, without experiments and without those that could not be sent. */
export const playedRounds = (call) => ownRounds(call).filter((round) => round.request !== null);

/** The method of a call, and the parameters that each of its rounds repeats. */
export function requestOf(round) {
  const { method, params } = round.request.body;
  return { method, ...Object.fromEntries(Object.entries(params).filter(([name]) => !ENGINE_MEMBERS.includes(name))) };
}

/**
 * Pair each answer with its question, in the order of the call: those of rounds, then those of the task.
 * @returns {Array<{key: string, question: object, answer: *}>}
 */
export function answeredQuestions(call) {
  const asked = Object.assign({}, ...playedRounds(call).map(questionsOf));
  const given = playedRounds(call).map(({ answers }) => ({ requests: asked, responses: answers }));
  return [...given, ...call.taskUpdates].flatMap(({ requests, responses }) =>
    Object.entries(responses).filter(([key]) => key in requests)
      .map(([key, answer]) => ({ key, question: requests[key], answer })));
}

/** The bearer token of a round; undefined if it has none. */
export const tokenOf = (round) => round.request.headers.authorization?.replace(/^Bearer /i, "");
