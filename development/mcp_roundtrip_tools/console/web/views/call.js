// A call as a timeline: one card for each round.

import { element, fill, icon } from "../dom.js";
import { isAwaited, ownRounds, statusOf } from "../calls.js";
import { clockTime, count, duration } from "../format.js";
import { roundCard } from "./round_card.js";

const STATUS = {
  running: "running", asking: "waiting for an answer", completed: "completed", failed: "failed",
  task: "became a task", stopped: "stopped",
};

/** Return the view of a call, which follows it until the signal aborts. */
export function callView(context, call, signal, isOpen = true) {
  const cards = [];
  const timeline = element("ol", { class: "timeline" });
  const status = element("span", {});
  const facts = element("span", { class: "facts" });
  const stop = element("button", { type: "button", class: "quiet", onclick: () => context.calls.stop(call) }, "Stop");
  const node = element("details", { class: "call", open: isOpen, ontoggle: update },
    element("summary", { class: "call-head" }, icon("chevron"),
      element("h2", { class: "call-title" }, status,
        element("span", { class: "call-arguments" }, describeArguments(call))),
      facts),
    element("div", { class: "call-body" }, timeline, stop));

  function update() {
    const state = statusOf(call);
    fill(status, element("span", { class: `chip status-${state}` }, STATUS[state]));
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

  context.store.subscribe(`call:${call.id}`, update, signal);
  update();
  return node;
}

function factsOf(call) {
  const own = ownRounds(call);
  const experiments = call.rounds.filter((round) => round.experiment).length;
  const total = own.reduce((sum, round) => sum + (round.durationMs ?? 0), 0);
  const parts = [count(own.length, "round"), experiments > 0 && count(experiments, "experiment"), duration(total)];
  return [...parts, clockTime(own[0].startedAtMs)].filter(Boolean).join(" · ");
}

function describeArguments(call) {
  if (call.kind === "resource") return call.name;
  const text = JSON.stringify(call.arguments);
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
