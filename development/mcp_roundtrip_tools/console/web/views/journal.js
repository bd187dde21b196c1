// The journal of a round, decoded from its requestState: what was asked, answered, run and replayed.

import { factList, h, icon, lazyDetails } from "../dom.js";
import { bytes, clockTime, count } from "../format.js";
import { explained, meaningOf } from "../words.js";
import { jsonView } from "./json_view.js";

const STRIP_LENGTH = 8;
const INLINE = 160;

/** The largest state that the server mints, by default. */
const MAX_STATE = 65_536;

/** Return a mark, such as "asked size": an icon and its word in a colour, and what it is about. */
export function mark(name, subject = null) {
  return h(`span.chip.${name}`, { title: meaningOf(name) }, icon(name), name, subject);
}

const keyOf = ({ key }) => h("code", { dir: "auto" }, key);

/** Return the journal in one line for a round's card, without the questions, which the card shows. Null if it is empty. */
export function journalStrip({ error, state }) {
  const entries = error ? [] : (state?.journal ?? []).filter((entry) => entry.mark !== "asked");
  if (entries.length === 0) return null;
  const replayed = entries.filter((entry) => entry.mark === "replayed");
  const isSummed = replayed.length > 3;
  const shown = [...(isSummed ? [] : replayed), ...entries.filter((entry) => entry.mark !== "replayed")];
  return h("ul.journal-strip", { "aria-label": "Journal" },
    isSummed && h("li", mark("replayed", h("span", replayed.length))),
    shown.slice(0, STRIP_LENGTH).map((entry) => h("li", mark(entry.mark, keyOf(entry)))),
    shown.length > STRIP_LENGTH && h("li.hint", `and ${shown.length - STRIP_LENGTH} more`));
}

/** Return the panel of a round's journal: facts about the state, and its entries. */
export function journalPanel({ state, error }) {
  if (state.error !== undefined) return h("p.error", state.error);
  const received = error
    ? "The round was refused. This is the state that it received."
    : "The call has ended: this round returned no state. It received this one, and the answers of its request.";
  return h("div.journal",
    state.isReceived && h("p.hint", received),
    facts(state),
    journalList(state.journal),
    state.payload !== null && [
      h("p.hint", "This state names a call that waits in the task table; its journal is stored there."),
      jsonView(state.payload, "payload"),
    ]);
}

/** Return the entries of a journal, also of a task's. */
export function journalList(entries, label = "Journal") {
  if (entries.length === 0) return h("p.hint", "The journal is empty.");
  return h("ul.entries", { "aria-label": label }, entries.map((entry) => h("li",
    h("div.entry-head", mark(entry.mark, keyOf(entry)), h("span.hint", [entry.kind, bytes(entry.bytes)].join(" · "))),
    valueView(entry.value))));
}

function valueView(value) {
  if (value === null || value === undefined) return null;
  const text = JSON.stringify(value);
  if (text.length <= INLINE) return h("code", { dir: "auto" }, text);
  return lazyDetails(h("code", { dir: "auto" }, `${text.slice(0, INLINE / 2)}…`), () => jsonView(value, "value"));
}

function facts(state) {
  return factList([
    ["Size", `${bytes(state.bytes)}, ${Math.ceil((100 * state.bytes) / MAX_STATE)} % of the limit`],
    ["Round", state.round],
    ["Issued", clockTime(state.issuedAtMs)],
    ["Expires", expiry(state)],
    ["Call since", clockTime(state.flowStartedAtMs)],
    [explained("Bound to"), [state.isAnonymous ? "anonymous callers" : "its caller", ", the tool and its arguments"]],
    ["Protected by", state.isEncrypted ? "AES-256-GCM and a KMS signature" : "a KMS signature; not encrypted"],
    [explained("Flow"), state.flow && h("code", state.flow)],
    [explained("Unused answers"), state.unusedAnswers.join(", ")],
  ]);
}

function expiry({ expiresAtMs }) {
  const left = Math.round((expiresAtMs - Date.now()) / 60_000);
  if (left < 0) return h("span.error", `${clockTime(expiresAtMs)}, expired`);
  return `${clockTime(expiresAtMs)}, in ${left < 1 ? "less than a minute" : count(left, "minute")}`;
}
