// The main part of a round's card: its questions, the answers that were given, the task, or the result.

import { element, fill, icon } from "../dom.js";
import { followerOf, outcomeOf, resultOf } from "../calls.js";
import { questionChannel } from "../mcp/channels.js";
import { awaitNews } from "../news.js";
import { channelView } from "./channel.js";
import { jsonView } from "./json_view.js";
import { givenAnswers, questionForm } from "./question.js";
import { resultView } from "./result.js";
import { taskView } from "./task.js";

/** Return the body of a round; `update` replaces it when the round has come further. */
export function roundBody(context, call, round, signal) {
  const node = element("div", { class: "round-body" });
  let shown = "";

  function update() {
    const stage = stageOf(call, round);
    if (stage === shown) return;
    shown = stage;
    fill(node, branchAnswers(call, round), contentOrRaw(context, call, round, stage, signal));
  }

  return { node, update };
}

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
    return contentOf(context, call, round, stage, signal);
  } catch (error) {
    const problem = `The response cannot be shown, because it does not have the shape of a result: ${error.message}.`;
    return [element("p", { class: "error" }, problem), jsonView(round.response?.body ?? null, { label: "response" })];
  }
}

function contentOf(context, call, round, stage, signal) {
  switch (stage) {
    case "waiting": return hint("Waiting for the response…");
    case "continue": return hint("The server saved its progress in requestState and asked for the next round at once.");
    case "stopped": return stopped(context, call, round);
    case "task": return task(context, call, round, signal);
    case "asking": return form(context, call, round);
    case "completed": case "failed": return concluded(context, call, round);
    default: return answered(context, call, round);
  }
}

const hint = (text) => element("p", { class: "hint" }, text);

function stopped({ calls }, call, round) {
  const goOn = () => calls.sendRound(call, { after: round });
  return element("div", { class: "settled" },
    hint("The server asked for the next round at once. The console stopped here."),
    element("button", { type: "button", onclick: goOn }, "Go on"));
}

function task(context, call, round, signal) {
  const { taskId } = resultOf(round);
  const link = element("a", { href: `#/tasks/${encodeURIComponent(taskId)}` }, element("code", {}, taskId));
  if (round.branch !== undefined && taskId === call.taskId) {
    const repeated = "The call has become this task before. The server returned it again: the tool did not run, and the answers of this round do not count: ";
    return element("p", { class: "became-task" }, icon("task"), repeated, link);
  }
  return [
    element("p", { class: "became-task" }, icon("task"), "The call became a task: ", link),
    taskView(context, taskId, signal),
  ];
}

/** Show a result; also what it asks in another way than by input requests. */
function concluded(context, call, round) {
  const channel = questionChannel(round.response?.body);
  return [resultView(round), channel && channelView(context, call, round, channel)];
}

function form({ store, calls }, call, round, { experiment, onSent } = {}) {
  return questionForm({
    round, roots: store.state.roots,
    send(answers, roots) {
      if (roots) store.update({ roots });
      calls.sendRound(call, { after: round, answers, experiment });
      onSent?.();
    },
  }).node;
}

/** A state can be answered again: until the call is a task, the server stores nothing, and each answer is a branch. */
function answered(context, call, round) {
  const settled = [
    givenAnswers(round, followerOf(call, round).answers),
    element("button", { type: "button", class: "quiet again", onclick: open }, icon("replayed"), "Answer differently"),
  ];
  const place = element("div", { class: "settled" }, settled);
  function open() {
    awaitNews();
    const opened = form(context, call, round, { experiment: "older state", onSent: () => fill(place, settled) });
    opened.dataset.news = "answer differently";
    fill(place, opened);
  }
  return place;
}
