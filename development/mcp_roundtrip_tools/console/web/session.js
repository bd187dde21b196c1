// Keeps the calls of a window over a reload of the page: in sessionStorage, which other windows cannot read.

import { parseJson } from "./format.js";

const STORED = "mcp-roundtrip-console-session";

/** Characters of all calls; browsers allow about five million. The oldest calls are dropped first. */
export const MAX_CHARACTERS = 2_000_000;

/** Store the calls, the roots and the user when the page is left, for this run of the server. */
export function keepSession({ state }) {
  window.addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(STORED, sessionText(state.application.run, state));
    } catch {
      sessionStorage.removeItem(STORED); // the storage is full or forbidden: the page works without it
    }
  });
}

/** Return the text that `readSession` reads: the newest calls that have room. */
export function sessionText(run, { calls, roots, profile: { user, scopes } }, most = MAX_CHARACTERS) {
  const texts = calls.map((call) => JSON.stringify({ ...call, rounds: call.rounds.map(({ abort, ...round }) => round) }));
  for (let total = texts.join("").length; total > most;) total -= texts.shift().length;
  return `{"run":${JSON.stringify(run)},"roots":${JSON.stringify(roots)},"user":${JSON.stringify({ user, scopes })},"calls":[${texts}]}`;
}

/**
 * Return what was stored in the same run of the server: `calls`, `roots` and `user`; null if there is nothing.
 * Another run has other keys, so that it refuses the states of earlier calls.
 */
export function readSession(run) {
  const found = parseJson(sessionStorage.getItem(STORED));
  if (found?.run !== run) return null;
  for (const round of found.calls.flatMap(({ rounds }) => rounds)) {
    round.abort = new AbortController();
    if (round.durationMs !== null) continue;
    Object.assign(round, { durationMs: 0, error: { message: "The page was left before the response came." } });
  }
  return found;
}
