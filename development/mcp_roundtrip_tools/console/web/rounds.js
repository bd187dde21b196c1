// Reads the rounds of a call: what each returned, which one follows it, and how the call stands.

/** Return the result of a round's response, or null. */
export const resultOf = (round) => round.response?.body?.result ?? null;

/** Return the requestState that a round's response carries, or null. */
export const stateOf = (round) => resultOf(round)?.requestState ?? null;

/** Return the input requests of a round's response by key; empty if it asks nothing. */
export const questionsOf = (round) =>
  (resultOf(round)?.resultType === "input_required" ? resultOf(round).inputRequests ?? {} : {});

export const isAwaited = (round) => round.durationMs === null;

/** Return the round that follows another one, such as with answers; undefined if there is none yet. */
export const followerOf = (call, round) => call.rounds.find((each) => each.follows === round.number && !each.experiment);

/** Return the rounds of the call without its experiments, and without what continues these. */
export const ownRounds = (call) => call.rounds.filter((round) => round.branch === undefined);

/** Return the state of a call: "running", "stopped", or how its last round ended. Experiments do not change it. */
export function statusOf(call) {
  const last = ownRounds(call).at(-1);
  const outcome = outcomeOf(last);
  if (outcome === null) return "running";
  return last.isStopped || outcome === "continue" ? "stopped" : outcome;
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
