// The journal of a round, decoded from its requestState: what was asked, answered, run and replayed, and what travelled.

import { element, fill, icon } from "../dom.js";
import { bytes, clockTime, count } from "../format.js";
import { copyButton, jsonView } from "./json_view.js";

const MARKS = ["asked", "answered", "ran", "replayed"];
const EXPLANATIONS = {
  asked: "waits for an answer",
  answered: "answered by this round's request",
  ran: "ran in this round",
  replayed: "was in the state that this round received",
};
const STRIP_LENGTH = 8;
const PAGE = 200;
const INLINE = 160;

/** The largest state that the server mints, by default. */
const MAX_STATE = 65_536;

/** Return a mark: an icon and a word in a colour. */
export function mark(name) {
  return element("span", { class: `chip ${name}`, title: EXPLANATIONS[name] }, icon(name), name);
}

/** Return the entries of a round's journal; empty if nothing is decoded. */
export const entriesOf = (round) => round.state?.journal ?? [];

/** Return the journal in one line for a round's card, without the questions, which the card shows. Null if it is empty. */
export function journalStrip(round) {
  const entries = round.error ? [] : entriesOf(round).filter((entry) => entry.mark !== "asked");
  if (entries.length === 0) return null;
  const replayed = entries.filter((entry) => entry.mark === "replayed");
  const others = entries.filter((entry) => entry.mark !== "replayed");
  const shownReplayed = replayed.length > 3 ? [] : replayed;
  const shown = [...shownReplayed, ...others].slice(0, STRIP_LENGTH);
  const hidden = others.length + shownReplayed.length - shown.length;
  return element(
    "ul",
    { class: "journal-strip", "aria-label": "Journal" },
    replayed.length > 3 &&
      element("li", {}, element("span", { class: "chip replayed" }, icon("replayed"), `${replayed.length} replayed`)),
    shown.map((entry) =>
      element(
        "li",
        {},
        element(
          "span",
          { class: `chip ${entry.mark}`, title: EXPLANATIONS[entry.mark] },
          icon(entry.mark),
          element("code", {}, entry.key),
          entry.mark,
        ),
      ),
    ),
    hidden > 0 && element("li", { class: "hint" }, `and ${hidden} more`),
  );
}

/** Return the panel of a round's journal: facts about the state, its entries, and the text that travelled. */
export function journalPanel(round) {
  const { state } = round;
  if (state.error !== undefined) return refusedState(state, round);
  return element(
    "div",
    { class: "journal" },
    state.isReceived &&
      element(
        "p",
        { class: "hint" },
        round.error
          ? "The round was refused. This is the state that it received."
          : "The call has ended: this round returned no state. It received this one, and the answers of its request.",
      ),
    facts(state),
    journalTable(state.journal ?? []),
    state.payload !== null &&
      state.payload !== undefined && [
        element("p", { class: "hint" }, "This state names a call that waits in the task table; its journal is stored there."),
        jsonView(state.payload, { label: "payload" }),
      ],
    travelled(sealedState(round)),
  );
}

function refusedState(state, round) {
  return element("div", { class: "journal" }, element("p", { class: "error" }, state.error), travelled(sealedState(round)));
}

function sealedState(round) {
  return round.response?.body?.result?.requestState ?? round.request?.body?.params?.requestState ?? "";
}

/** Return a table of the entries of a journal, also of a task's. */
export function journalTable(entries, { label = "Journal" } = {}) {
  if (entries.length === 0) return element("p", { class: "hint" }, "The journal is empty.");
  const body = element("tbody", {});
  const more = element("button", { type: "button", class: "quiet", onclick: () => show(entries.length) });
  const table = element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    element(
      "table",
      { class: "journal-table" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ["Mark", "Key", "Kind", "Value", "Size"].map((name) => element("th", { scope: "col" }, name)),
        ),
      ),
      body,
    ),
    more,
  );

  function show(length) {
    fill(body, entries.slice(0, length).map(row));
    more.hidden = length >= entries.length;
    fill(more, `Show all ${count(entries.length, "entry", "entries")}`);
  }

  show(Math.min(PAGE, entries.length));
  return table;
}

function row({ mark: name, key, kind, value, bytes: size }) {
  return element(
    "tr",
    { class: name },
    element("td", {}, MARKS.includes(name) ? mark(name) : name),
    element("th", { scope: "row" }, element("code", { dir: "auto" }, key)),
    element("td", {}, kind),
    element("td", { class: "value" }, valueView(value)),
    element("td", { class: "number" }, bytes(size)),
  );
}

function valueView(value) {
  if (value === null || value === undefined) return element("span", { class: "hint" }, "–");
  const text = JSON.stringify(value) ?? "";
  if (text.length <= INLINE) return element("code", { dir: "auto" }, text);
  const place = element("div", {});
  return element(
    "details",
    {
      ontoggle: () => {
        if (!place.hasChildNodes()) fill(place, jsonView(value, { label: "value" }));
      },
    },
    element("summary", {}, element("code", { dir: "auto" }, `${text.slice(0, INLINE / 2)}…`)),
    place,
  );
}

function facts(state) {
  const rows = [
    ["Size", size(state.bytes)],
    ["Round", state.round],
    ["Issued", clockTime(state.issuedAtMs)],
    ["Expires", expiry(state)],
    ["Call since", state.flowStartedAtMs && clockTime(state.flowStartedAtMs)],
    ["Bound to", [state.isAnonymous ? "anonymous callers" : "its caller", ", the tool and its arguments"]],
    ["Protected by", state.isEncrypted ? "AES-256-GCM and a KMS signature" : "a KMS signature; not encrypted"],
    ["Flow", state.flow && element("code", {}, state.flow)],
    ["Unused answers", state.unusedAnswers?.length > 0 && state.unusedAnswers.join(", ")],
  ];
  return element(
    "dl",
    { class: "state-facts" },
    rows
      .filter(([, value]) => value)
      .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

function size(length) {
  return [
    `${bytes(length)}, ${Math.ceil((100 * length) / MAX_STATE)} % of the limit `,
    element("meter", {
      min: 0,
      max: MAX_STATE,
      high: MAX_STATE * 0.75,
      value: length,
      "aria-label": "Share of the largest state",
    }),
  ];
}

function expiry({ expiresAtMs, reason }) {
  const left = Math.round((expiresAtMs - Date.now()) / 60_000);
  if (reason === "expired" || left < 0) return element("span", { class: "error" }, `${clockTime(expiresAtMs)}, expired`);
  return `${clockTime(expiresAtMs)}, in ${left < 1 ? "less than a minute" : count(left, "minute")}`;
}

/** The text itself, which can be long: it is put into the page when it is opened. */
function travelled(text) {
  if (text === "") return null;
  const place = element("div", { class: "code-block" });
  const open = () => {
    if (!place.hasChildNodes())
      fill(
        place,
        copyButton(text, "Copy requestState"),
        element("pre", { class: "code sealed", tabindex: 0, role: "region", "aria-label": "requestState" }, text),
      );
  };
  return element(
    "details",
    { class: "travelled", ontoggle: open },
    element("summary", {}, `requestState as it travelled (${count(text.length, "character")})`),
    place,
  );
}
