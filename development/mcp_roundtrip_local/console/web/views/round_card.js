// One round of a call: what the server did, what it asks or returns, and the raw messages on demand.

import { element, fill, icon, uniqueId } from "../dom.js";
import { answeringRound, outcomeOf, questionsOf } from "../calls.js";
import { clockTime, duration } from "../format.js";
import { environmentOf, logLinesOf, serviceSummary } from "../exchange.js";
import { questionChannel } from "../mcp/channels.js";
import { channelView } from "./channel.js";
import { copyPanel } from "./copy.js";
import { experimentsPanel } from "./experiments.js";
import { entriesOf, journalPanel, journalStrip } from "./journal.js";
import { readLogLine } from "../log_lines.js";
import { jsonView } from "./json_view.js";
import { givenAnswers, questionForm } from "./question.js";
import { resultView } from "./result.js";
import { serverView } from "./server.js";
import { taskView } from "./task.js";

const OUTCOMES = {
  asking: ["asked", "asked"], continue: ["replayed", "continues"], task: ["task", "task"],
  completed: ["answered", "completed"], failed: ["warning", "failed"],
};

/** Return the card of a round; `update` shows what is known by now. */
export function roundCard(context, call, round, signal) {
  const title = element("h2", { id: uniqueId("round") }, `Round ${round.number}`);
  const head = { chips: element("span", { class: "chips" }), facts: element("span", { class: "facts" }) };
  const logs = element("div", { class: "logs", hidden: true, tabindex: 0, role: "region", "aria-label": `Log of round ${round.number}` });
  const body = element("div", { class: "round-body" });
  const strip = element("div", {});
  const panels = panelSwitch(context, call, round);
  const node = element("li", { class: "round", "aria-labelledby": title.id },
    element("div", { class: "round-head" }, title, head.chips, strip, head.facts),
    logs, body, panels.node);
  let shown = "";

  function update() {
    const outcome = outcomeOf(round);
    node.dataset.outcome = outcome ?? "running";
    fill(head.chips, chips(round, outcome));
    fill(head.facts, facts(round));
    showLogs(logs, round);
    if (strip.childElementCount === 0 && entriesOf(round).length > 0) fill(strip, journalStrip(round));
    panels.update();
    const next = bodyState(call, round, outcome);
    if (next === shown) return;
    shown = next;
    fill(body, bodyOf(context, call, round, next, signal));
    if (next === "asking") focusQuestion(body);
  }

  return { node, update };
}

function chips(round, outcome) {
  const [name, text] = OUTCOMES[outcome] ?? [];
  const keys = Object.keys(questionsOf(round));
  return [
    round.experiment && element("span", { class: "chip experiment" }, round.experiment),
    outcome === null && element("span", { class: "chip" }, "waiting…"),
    name && element("span", { class: `chip mark-${outcome}` }, icon(name), text, keys.length > 0 && element("code", {}, keys.join(", "))),
  ];
}

function facts(round) {
  const environment = environmentOf(round.exchange);
  return [
    environment && element("span", { class: environment.isNewEnvironment ? "environment new" : "environment", title: "Execution environment" },
      environment.environmentId, element("span", { class: "chip" }, environment.isNewEnvironment ? "new" : "warm")),
    serviceSummary(round.exchange).map((text) => element("span", {}, text)),
    round.durationMs !== null && element("span", { title: `sent at ${clockTime(round.startedAtMs)}` }, duration(round.durationMs)),
  ];
}

function showLogs(logs, round) {
  const notified = (round.response?.notifications ?? []).map(describeNotification);
  const lines = logLinesOf(round.exchange).map((line) => readLogLine(line.text)).filter((line) => !line.isRoutine)
    .map((line) => [line.level, line.text]);
  const rows = [...notified, ...lines];
  if (logs.childElementCount === rows.length) return;
  logs.hidden = rows.length === 0;
  fill(logs, rows.map(([kind, text]) => element("p", { class: `log-${kind}` }, element("span", { class: "log-kind" }, kind), element("span", { dir: "auto" }, text))));
}

function describeNotification({ method, params = {} }) {
  if (method === "notifications/progress") {
    const of = params.total === undefined ? "" : ` of ${params.total}`;
    return ["progress", `${params.progress}${of}${params.message ? ` · ${params.message}` : ""}`];
  }
  if (method === "notifications/message") {
    return [params.level ?? "log", typeof params.data === "string" ? params.data : JSON.stringify(params.data)];
  }
  return [method.replace("notifications/", ""), JSON.stringify(params)];
}

// -- the body: questions, the result, or nothing yet ----------------------------------------------------------------------

function bodyState(call, round, outcome) {
  if (outcome === null) return "waiting";
  if (outcome !== "asking") return outcome;
  const next = answeringRound(call, round);
  return next === undefined ? "asking" : `answered in round ${next.number}`;
}

function bodyOf(context, call, round, state, signal) {
  switch (state) {
    case "waiting": return element("p", { class: "hint waiting" }, "Waiting for the response…");
    case "continue": return element("p", { class: "hint" }, "The server saved its progress in requestState and asked for the next round at once.");
    case "task": return task(context, call, signal);
    case "asking": return form(context, call, round);
    case "completed": case "failed": return concluded(context, call, round);
    default: return answered(context, call, round);
  }
}

function task(context, call, signal) {
  return [
    element("p", { class: "became-task" }, icon("task"), "The call became a task: ", element("a", { href: `#/tasks/${call.taskId}` }, element("code", {}, call.taskId))),
    taskView(context, call.taskId, call, signal),
  ];
}

/** Show a result; also what it asks in another way than by input requests. */
function concluded(context, call, round) {
  const channel = questionChannel(round.response?.body);
  return [resultView(round), channel && channelView(context, call, round, channel)];
}

function form(context, call, round, experiment) {
  const { store, calls } = context;
  return questionForm({
    round, roots: store.state.roots,
    send(answers, roots) {
      if (roots) store.update({ roots });
      calls.answer(call, round, answers, experiment);
    },
  }).node;
}

/** A state can be answered again: the server stores nothing, so each answer is a branch of its own. */
function answered(context, call, round) {
  const place = element("div", { class: "settled" }, givenAnswers(round, answeringRound(call, round).answers),
    element("button", { type: "button", class: "quiet again", onclick: () => {
      fill(place, form(context, call, round, "older state"));
      focusQuestion(place);
    } }, icon("replayed"), "Answer differently"));
  return place;
}

function focusQuestion(place) {
  const target = place.querySelector("input, select, textarea, a.button, button");
  requestAnimationFrame(() => {
    target?.focus({ preventScroll: true });
    place.closest(".round")?.scrollIntoView({ block: "nearest" });
  });
}

// -- the raw messages and what the server recorded --------------------------------------------------------------------------

/** @returns {{id: string, label: string, isReady: boolean, render: () => Node}[]} */
function panelsOf(context, call, round) {
  return [
    { id: "request", label: "Request", isReady: round.request !== null, render: () => message(round.request) },
    { id: "response", label: "Response", isReady: round.response !== null, render: () => message(round.response) },
    { id: "server", label: "Server", isReady: round.exchange !== null, render: () => serverView(round.exchange) },
    { id: "journal", label: "Journal", isReady: round.state !== null, render: () => journalPanel(round) },
    { id: "experiments", label: "Experiments", isReady: round.request !== null, render: () => experimentsPanel(context, call, round) },
    { id: "copy", label: "Copy as", isReady: round.response !== null, render: () => copyPanel(context, call, round) },
  ];
}

function message({ url, status, headers, body, notifications = [] }) {
  const line = url ? `POST ${url}` : `HTTP ${status}`;
  return [
    element("p", { class: "start-line" }, line),
    element("dl", { class: "headers" }, Object.entries(headers).map(([name, value]) => [
      element("dt", {}, name), element("dd", {}, name === "authorization" ? `${value.slice(0, 20)}…` : value),
    ])),
    notifications.map((each) => jsonView(each, { label: "notification" })),
    jsonView(body, { label: url ? "request body" : "response body" }),
  ];
}

/** Buttons of which at most one shows its panel below. */
function panelSwitch(context, call, round) {
  const place = element("div", { class: "panel", id: uniqueId("panel"), hidden: true });
  const bar = element("div", { class: "panel-bar" });
  const node = element("div", {}, bar, place);
  const buttons = new Map();
  let open = null;

  function toggle(id) {
    open = open === id ? null : id;
    place.hidden = open === null;
    fill(place, open && panelsOf(context, call, round).find((each) => each.id === open).render());
    mark();
  }

  function mark() {
    for (const [id, button] of buttons) button.setAttribute("aria-expanded", String(id === open));
  }

  function update() {
    for (const { id, label, isReady } of panelsOf(context, call, round)) {
      if (!buttons.has(id)) {
        buttons.set(id, element("button", { type: "button", class: "tab", "aria-controls": place.id, onclick: () => toggle(id) }, label));
        bar.append(buttons.get(id));
      }
      buttons.get(id).hidden = !isReady;
    }
    mark();
  }

  return { node, update };
}
