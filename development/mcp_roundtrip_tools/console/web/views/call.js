// A call as a timeline: one card for each round.

import { button, fill, h, icon } from "../dom.js";
import { isAwaited, ownRounds, statusOf } from "../rounds.js";
import { clockTime, count, duration, shortJson } from "../format.js";
import { meaningOf } from "../words.js";
import { roundCard } from "./round.js";

const STATUS = {
  running: "running", asking: "waiting for an answer", completed: "completed", failed: "failed",
  task: "became a task", stopped: "stopped",
};

/** Return the view of a call, which follows it until the signal aborts. */
export function callView(context, call, signal, isOpen = true) {
  const cards = [];
  const timeline = h("ol.timeline");
  const [status, facts] = [h("span"), h("span.facts")];
  const stop = button("Stop", () => context.calls.stop(call), { class: "quiet" });
  const given = call.kind === "resource" ? call.name : shortJson(call.arguments);
  const title = h("h2.call-title", status, h("span.call-arguments", given));
  const node = h("details.call", { open: isOpen, ontoggle: update },
    h("summary.call-head", icon("chevron"), title, facts), h("div.call-body", timeline, stop));

  function update() {
    const state = statusOf(call);
    fill(status, h(`span.chip.status-${state}`, { title: meaningOf(STATUS[state]) }, STATUS[state]));
    fill(facts, factsOf(call));
    const isBusy = call.rounds.some(isAwaited); // also with an experiment
    stop.hidden = !isBusy;
    node.setAttribute("aria-busy", String(isBusy));
    if (!node.open && cards.length === 0) return; // an older call: its rounds are built when it is opened
    while (cards.length < call.rounds.length) {
      const card = roundCard(context, call, call.rounds[cards.length], signal);
      cards.push(card);
      timeline.append(card.node);
    }
    for (const card of cards) card.update();
  }

  context.store.follow(`call:${call.id}`, update, signal);
  return node;
}

function factsOf(call) {
  const own = ownRounds(call);
  const experiments = call.rounds.filter((round) => round.experiment).length;
  const total = own.reduce((sum, round) => sum + (round.durationMs ?? 0), 0);
  const parts = [count(own.length, "round"), experiments > 0 && count(experiments, "experiment"), duration(total)];
  return [...parts, clockTime(own[0].startedAtMs)].filter(Boolean).join(" · ");
}
