// One round of a call as a card: how it ended, what it asks or returns, and more on demand. An answered round is one line.

import { button, fill, h, icon, uniqueId } from "../dom.js";
import { followerOf, outcomeOf, questionsOf, resultOf } from "../rounds.js";
import { clockTime, duration } from "../format.js";
import { environmentOf, serviceCounts } from "../exchange.js";
import { questionChannel } from "../mcp/channels.js";
import { awaitNews } from "../news.js";
import { explained, meaningOf } from "../words.js";
import { channelView } from "./channel.js";
import { copyPanel } from "./copy.js";
import { experimentsPanel } from "./experiments.js";
import { journalPanel, journalStrip, mark } from "./journal.js";
import { jsonView } from "./json_view.js";
import { logOf } from "./log.js";
import { describeAnswer, givenAnswers, questionForm } from "./question.js";
import { resultView } from "./result.js";
import { environmentView, serverView } from "./server.js";
import { taskView } from "./task.js";

/** Return the card of a round; `update` shows what is known by now. */
export function roundCard(context, call, round, signal) {
  const title = h("h2", { id: uniqueId("round"), tabindex: -1, title: meaningOf("round") }, `Round ${round.number}`);
  const [chips, answer, facts] = ["chips", "answer", "facts"].map((name) => h(`span.${name}`));
  const [strip, log, body] = [h("span"), h("div"), h("div.round-body")];
  const panels = roundPanels(context, call, round);
  const card = h("details", { open: followerOf(call, round) === undefined },
    h("summary.round-head", icon("chevron"), title, chips, strip, answer, facts), log, body, panels.node);
  const node = h(round.branch === undefined ? "li.round" : "li.round.branch", { "aria-labelledby": title.id }, card);
  let [known, stage] = ["", ""];

  function update() {
    panels.update();
    const next = stageOf(call, round);
    if (next !== stage) {
      if (followerOf(call, round) && stage !== "") card.open = false;
      stage = next;
      fill(body, branchAnswers(call, round), contentOrRaw(context, call, round, stage, signal));
      fill(answer, answerLine(followerOf(call, round)));
    }
    const outcome = outcomeOf(round);
    const now = [outcome, round.exchange !== null, round.state !== null].join();
    if (now === known) return; // a call can have a hundred rounds
    known = now;
    node.dataset.outcome = outcome ?? "running";
    node.dataset.news = `round ${round.number} ${node.dataset.outcome}`;
    fill(chips, chipsOf(round, outcome));
    fill(facts, factsOf(round));
    fill(strip, journalStrip(round));
    fill(log, logOf(round));
  }

  return { node, update };
}

function chipsOf(round, outcome) {
  const chip = (kind, name, word) => h(`span.chip.${kind}`, { title: meaningOf(word) }, icon(name), word);
  const experiment = round.experiment ?? `continues round ${round.follows}`;
  const outcomes = {
    asking: () => mark("asked", h("code", Object.keys(questionsOf(round)).join(", "))),
    continue: () => chip("replayed", "replayed", "continues"),
    task: () => chip("ran", "task", "became a task"),
    completed: () => chip("answered", "answered", "completed"),
    failed: () => chip("failed", "warning", "failed"),
  };
  return [
    round.branch && h("span.chip.experiment", { title: meaningOf("experiment") }, experiment),
    outcome === null ? h("span.chip", "waiting…") : outcomes[outcome](),
  ];
}

function factsOf(round) {
  const environment = environmentOf(round.exchange);
  return [
    environment && environmentView(environment),
    serviceCounts(round.exchange).map(([name, number]) => h("span.services", `${number} `, explained(name))),
    round.durationMs !== null && h("span", { title: `sent at ${clockTime(round.startedAtMs)}` }, duration(round.durationMs)),
  ];
}

/** The answers of the next round in one line. */
function answerLine(follower) {
  return follower && Object.values(follower.answers).map(describeAnswer).join(" · ");
}

// -- the body: questions, the answers that were given, the task, or the result ------------------------------------------

function stageOf(call, round) {
  const outcome = outcomeOf(round);
  const isLast = followerOf(call, round) === undefined;
  if (outcome === "continue" && isLast) return "stopped";
  return outcome === "asking" && !isLast ? "answered" : outcome ?? "waiting";
}

/** A question has its own answer on its card; what was answered differently is on the card of the experiment. */
function branchAnswers(call, round) {
  if (!round.experiment || round.follows === null) return null;
  return givenAnswers(call.rounds[round.follows - 1], round.answers);
}

/** Return the content; the raw response if it has another shape than the specification's. */
function contentOrRaw(context, call, round, stage, signal) {
  try {
    return CONTENTS[stage](context, call, round, signal);
  } catch (error) {
    const problem = `The response cannot be shown, because it does not have the shape of a result: ${error.message}.`;
    return [h("p.error", problem), jsonView(round.response?.body ?? null, "response")];
  }
}

const CONTENTS = {
  waiting: () => h("p.hint", "Waiting for the response…"),
  continue: () => h("p.hint", "The server saved its progress in requestState and asked for the next round at once."),
  stopped: ({ calls }, call, round) => h("div.settled",
    h("p.hint", "The server asked for the next round at once. The console stopped here."),
    button("Go on", () => calls.sendRound(call, { after: round }))),
  task, answered,
  asking: (context, call, round) => form(context, call, round),
  completed: concluded, failed: concluded,
};

function task(context, call, round, signal) {
  const { taskId } = resultOf(round);
  const link = h("a", { href: `#/tasks/${encodeURIComponent(taskId)}` }, h("code", taskId));
  const isRepeated = round.branch !== undefined && taskId === call.taskId;
  const text = isRepeated
    ? "The call has become this task before. The tool did not run again, and the answers of this round do not count: "
    : "The call became a task: ";
  return [h("p.became-task", icon("task"), text, link), !isRepeated && taskView(context, taskId, signal)];
}

/** Show a result; also what it asks in another way than by input requests. */
function concluded(context, call, round) {
  const channel = questionChannel(round.response?.body);
  return [resultView(round), channel && channelView(context, call, round, channel)];
}

function form({ store, calls }, call, round, { experiment, onSent } = {}) {
  return questionForm({
    requests: questionsOf(round), roots: store.state.roots,
    send(answers, roots) {
      if (roots) store.update({ roots });
      calls.sendRound(call, { after: round, answers, experiment });
      onSent?.();
    },
  });
}

/** A state can be answered again: until the call is a task, the server stores nothing, and each answer is a branch. */
function answered(context, call, round) {
  const again = button([icon("replayed"), "Answer differently"], open, { class: "quiet again" });
  const settled = [givenAnswers(round, followerOf(call, round).answers), again];
  const place = h("div.settled", settled);
  function open() {
    awaitNews();
    const opened = form(context, call, round, { experiment: "older state", onSent: () => fill(place, settled) });
    opened.dataset.news = "answer differently";
    fill(place, opened);
  }
  return place;
}

// -- on demand: the raw messages, the server's part, the journal, experiments, copies -------------------------------------

const PANELS = [
  { label: "Request", isReady: (round) => round.request, render: (context, call, round) => message(round.request) },
  { label: "Response", isReady: (round) => round.response, render: (context, call, round) => message(round.response) },
  { label: "Server", isReady: (round) => round.exchange, render: (context, call, round) => serverView(round.exchange) },
  { label: "Journal", word: "journal", isReady: (round) => round.state, render: (context, call, round) => journalPanel(round) },
  { label: "Experiments", word: "experiment", isReady: (round) => round.request, render: experimentsPanel },
  { label: "Copy as", isReady: (round) => round.response, render: copyPanel },
];

/** Return the buttons of a round's panels, of which at most one is open below them. */
function roundPanels(context, call, round) {
  const place = h("div.panel", { id: uniqueId("panel"), hidden: true });
  const buttons = PANELS.map((panel) => button(panel.label, () => toggle(panel),
    { class: "tab", "aria-controls": place.id, title: meaningOf(panel.word) }));
  const node = h("div", h("div.panel-bar", buttons), place);
  let open = null;

  function toggle(panel) {
    open = open === panel ? null : panel;
    place.hidden = open === null;
    fill(place, open?.render(context, call, round));
    update();
    if (open !== null) node.scrollIntoView({ block: "nearest" }); // the button may be at the lower edge of the window
  }

  function update() {
    for (const [index, panel] of PANELS.entries()) {
      buttons[index].hidden = !panel.isReady(round);
      buttons[index].setAttribute("aria-expanded", String(panel === open));
    }
  }

  return { node, update };
}

function message({ url, status, headers, body, notifications = [] }) {
  const shorten = (name, value) => (name === "authorization" ? `${value.slice(0, 20)}…` : value);
  return [
    h("p.start-line", url ? `POST ${url}` : `HTTP ${status}`),
    h("dl.headers", Object.entries(headers).map(([name, value]) => [h("dt", name), h("dd", shorten(name, value))])),
    notifications.map((each) => jsonView(each, "notification")),
    jsonView(body, url ? "request body" : "response body"),
  ];
}
