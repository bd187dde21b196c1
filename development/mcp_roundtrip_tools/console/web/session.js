// Keeps the calls of a window over a reload of the page: in sessionStorage, which other windows cannot read.

const STORED = "mcp-roundtrip-console-session";
const SAVE_AFTER_MS = 300;

/** Characters of all calls; browsers allow about five million. The oldest calls are dropped first. */
export const MAX_CHARACTERS = 2_000_000;

/** Store the calls, the roots and the user whenever they change, for the run of the server at that time. */
export function keepSession(store, storage = sessionStorage) {
  let timer = null;
  const followed = new Set();
  function save() {
    clearTimeout(timer);
    timer = null;
    try {
      storage.setItem(STORED, sessionText(store.state.application.run, store.state));
    } catch {
      storage.removeItem(STORED); // the storage is full or forbidden: the page works without it
    }
  }
  const saveSoon = () => { timer ??= setTimeout(save, SAVE_AFTER_MS); };
  function follow({ calls }) {
    for (const { id } of calls.filter((call) => !followed.has(call.id))) {
      followed.add(id);
      store.subscribe(`call:${id}`, saveSoon);
    }
  }
  store.subscribe("calls", (state) => { follow(state); saveSoon(); });
  for (const topic of ["roots", "profile"]) store.subscribe(topic, saveSoon);
  window.addEventListener("pagehide", save);
  follow(store.state);
}

/** Return the text that `readSession` reads: the newest calls that have room. */
export function sessionText(run, { calls, roots, profile }, most = MAX_CHARACTERS) {
  const stored = [];
  let left = most;
  for (const call of calls.toReversed()) {
    const text = JSON.stringify({ ...call, rounds: call.rounds.map(({ abort, ...round }) => round) });
    left -= text.length;
    if (left < 0) break;
    stored.unshift(text);
  }
  const { user, scopes } = profile;
  return `{"run":${JSON.stringify(run)},"roots":${JSON.stringify(roots)},"user":${JSON.stringify({ user, scopes })},"calls":[${stored}]}`;
}

/**
 * Return what was stored in the same run of the server: `calls`, `roots` and `user`; null if there is nothing.
 * Another run has other keys, so that it refuses the states of earlier calls.
 */
export function readSession(run, storage = sessionStorage) {
  try {
    const found = JSON.parse(storage.getItem(STORED));
    return found?.run === run ? { ...found, calls: found.calls.map(restoreCall) } : null;
  } catch {
    return null;
  }
}

function restoreCall(call) {
  return { ...call, rounds: call.rounds.map(restoreRound) };
}

function restoreRound(round) {
  const restored = { ...round, abort: new AbortController() };
  if (round.durationMs !== null) return restored;
  return { ...restored, durationMs: 0, error: { message: "The page was left before the response came." } };
}
