// One round of a call: how it ended, what the server did, what it asks or returns, and more on demand.

import { element, fill, icon, uniqueId } from "../dom.js";
import { outcomeOf, questionsOf } from "../calls.js";
import { clockTime, duration } from "../format.js";
import { environmentOf, serviceSummary } from "../exchange.js";
import { journalStrip } from "./journal.js";
import { roundBody } from "./round_body.js";
import { roundLog } from "./round_log.js";
import { roundPanels } from "./round_panels.js";

/** Outcome -> its icon and its word. */
const OUTCOMES = {
  asking: ["asked", "asked"], continue: ["replayed", "continues"], task: ["task", "task"],
  completed: ["answered", "completed"], failed: ["warning", "failed"],
};

/** Return the card of a round; `update` shows what is known by now. */
export function roundCard(context, call, round, signal) {
  const title = element("h2", { id: uniqueId("round"), tabindex: -1 }, `Round ${round.number}`);
  const [chips, facts] = ["chips", "facts"].map((name) => element("span", { class: name }));
  const strip = element("div", {});
  const log = roundLog(round);
  const parts = [roundBody(context, call, round, signal), roundPanels(context, call, round)];
  let known = "";
  const kind = round.branch === undefined ? "round" : "round branch";
  const node = element("li", { class: kind, "aria-labelledby": title.id },
    element("div", { class: "round-head" }, title, chips, strip, facts),
    log.node, parts.map((part) => part.node));

  function update() {
    for (const part of parts) part.update();
    const outcome = outcomeOf(round);
    const now = [outcome, round.exchange !== null, round.state !== null].join();
    if (now === known) return; // a call can have a hundred rounds
    known = now;
    node.dataset.outcome = outcome ?? "running";
    node.dataset.news = `round ${round.number} ${node.dataset.outcome}`;
    fill(chips, chipsOf(round, outcome));
    fill(facts, factsOf(round));
    fill(strip, journalStrip(round));
    log.update();
  }

  return { node, update };
}

function chipsOf(round, outcome) {
  const [name, word] = OUTCOMES[outcome] ?? [];
  const keys = Object.keys(questionsOf(round)).join(", ");
  return [
    round.branch && element("span", { class: "chip experiment" }, round.experiment ?? `continues round ${round.follows}`),
    outcome === null && element("span", { class: "chip" }, "waiting…"),
    name && element("span", { class: `chip mark-${outcome}` }, icon(name), word, keys && element("code", {}, keys)),
  ];
}

function factsOf(round) {
  const environment = environmentOf(round.exchange);
  const sent = `sent at ${clockTime(round.startedAtMs)}`;
  return [
    environment && environmentView(environment),
    serviceSummary(round.exchange).map((text) => element("span", {}, text)),
    round.durationMs !== null && element("span", { title: sent }, duration(round.durationMs)),
  ];
}

function environmentView({ environmentId, isNewEnvironment }) {
  return element("span", { class: isNewEnvironment ? "environment new" : "environment", title: "Execution environment" },
    environmentId, element("span", { class: "chip" }, isNewEnvironment ? "new" : "warm"));
}
