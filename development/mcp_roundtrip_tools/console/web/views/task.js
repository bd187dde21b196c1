// One task: its questions, its result, and its workers, of which the running one can be killed.

import { resultOf } from "../calls.js";
import { announce, element, fill, icon, rebuild, uniqueId } from "../dom.js";
import { clockTime } from "../format.js";
import { awaitNews } from "../news.js";
import { repeat } from "../repeat.js";
import { changedQuestions } from "./changed_questions.js";
import { jsonView } from "./json_view.js";
import { questionForm } from "./question.js";
import { heading, resultView } from "./result.js";
import { statusChip } from "./tasks.js";
import { workersView } from "./workers.js";

const REFRESH_MS = 700;
const POLL_MS = 2_000;
const GONE = "This page no longer follows the task:";
const TERMINAL = new Set(["completed", "failed", "cancelled"]);

/** Return the page of a task. */
export function taskPage(context, id, signal) {
  queueMicrotask(awaitNews); // the page has been opened to follow the task
  return element(
    "article",
    { class: "task" },
    element(
      "header",
      { class: "page-head" },
      element("p", { class: "eyebrow" }, element("a", { href: "#/tasks" }, "Tasks")),
      element("h1", { tabindex: -1 }, originOf(context.store, id)?.call.name ?? "Task"),
      element("p", {}, element("code", {}, id)),
    ),
    taskView(context, id, signal),
  );
}

/** Return the console's call and the profile of the round that became a task; undefined if another client created it. */
function originOf(store, id) {
  const rounds = store.state.calls.flatMap((call) => call.rounds.map((round) => ({ call, round, profile: round.profile })));
  return rounds.find(({ round }) => resultOf(round)?.taskId === id);
}

/** Return what a task does, until the signal aborts. */
export function taskView(context, id, signal) {
  const parts = {
    head: element("div", { class: "task-head" }),
    changes: element("div", {}),
    question: element("div", {}),
    result: element("div", {}),
    workers: element("div", {}),
    problem: element("p", { class: "error", hidden: true }),
    refusal: element("p", { class: "error", role: "status", hidden: true }),
  };
  const poll = element("input", { type: "checkbox", checked: true });
  const { call, profile } = originOf(context.store, id) ?? {};
  const task = {
    id, profile, call: call?.taskId === id ? call : null, // an experiment with the call can have made a task of its own
    row: null, detailed: null, nextPollMs: 0, polledAtMs: null, refusedPoll: null, shown: {},
  };
  const client = clientOf(context, task);
  const polling = element(
    "label",
    { class: "option hint" },
    poll,
    `Poll every ${POLL_MS / 1000} s, as the task’s client does (a poll also replaces a lost worker)`,
  );
  const refresh = async () => {
    task.row = await context.api.task(id);
    if (poll.checked && isDue(task)) await client.poll();
    showTask(context, task, client, parts);
    polling.hidden = TERMINAL.has(task.row.status);
    return isOver(task, poll.checked);
  };
  /** A task that is not there does not come back. Other errors can end, so the task is read again. */
  const report = (error) => {
    const isGone = error.status === 404;
    showProblem(parts.problem, isGone ? `${GONE} ${error.message}` : error.message);
    if (!isGone) return;
    polling.hidden = true;
    gone.abort();
  };
  client.refresh = () => refresh().catch(report);
  const gone = new AbortController();
  repeat(refresh, REFRESH_MS, AbortSignal.any([signal, gone.signal]), report);
  return element(
    "div",
    { class: "task-body" },
    parts.head,
    parts.problem,
    parts.refusal,
    parts.changes,
    parts.question,
    parts.result,
    parts.workers,
    polling,
  );
}

/** Whether nothing about the task changes any more. A client without polls, or a refused one, never sees the end. */
function isOver({ row, detailed, refusedPoll }, isPolled) {
  if (!TERMINAL.has(row.status) || row.environmentId !== null) return false;
  return TERMINAL.has(detailed?.status) || !isPolled || refusedPoll !== null;
}

/** A client polls a task that works. One that waits for an answer is read again when it has changed. */
function isDue({ row, detailed, nextPollMs, polledAtMs }) {
  const isWaiting = detailed?.status === "input_required" && row.status === "input_required" && row.updatedAtMs === polledAtMs;
  return !isWaiting && Date.now() >= nextPollMs;
}

/** Return the requests of the task's client. */
function clientOf({ client, store }, task) {
  const request = (method, params = {}) =>
    client.request(method, { taskId: task.id, ...params }, { profile: task.profile ?? store.state.profile });
  return {
    async poll() {
      task.nextPollMs = Date.now() + POLL_MS;
      task.polledAtMs = task.row.updatedAtMs;
      try {
        task.detailed = await request("tasks/get");
        task.refusedPoll = null;
      } catch (error) {
        task.refusedPoll = error.message; // such as to another user: the page still shows the task
        return;
      }
      if (!task.call) return;
      task.call.task = task.detailed;
      store.notify(`call:${task.call.id}`);
    },
    async answer(requests, responses) {
      await request("tasks/update", { inputResponses: responses });
      if (task.call) {
        task.call.taskUpdates.push({ requests, responses });
        store.notify(`call:${task.call.id}`);
      }
      task.nextPollMs = 0;
    },
    async cancel() {
      await request("tasks/cancel");
      task.nextPollMs = 0;
    },
  };
}

function showProblem(place, text) {
  place.hidden = text === "";
  place.dataset.news = text;
  fill(place, text);
}

/** Carry out what the user clicked. A refusal stays on the page until the next click. */
async function act(action, client, { refusal }) {
  awaitNews();
  showProblem(refusal, "");
  try {
    await action();
  } catch (error) {
    showProblem(refusal, error.message);
  }
  await client.refresh();
}

function showTask(context, task, client, parts) {
  const { row, detailed, refusedPoll } = task;
  showProblem(parts.problem, refusedPoll === null ? "" : `The poll was refused: ${refusedPoll}`);
  const now = (part, key, view) => {
    if (task.shown[part] === key) return;
    task.shown[part] = key;
    rebuild(parts[part], view());
  };
  now("head", JSON.stringify([row.status, row.statusMessage, detailed?.statusMessage]), () => head(task, client, parts));
  const requests = detailed?.status === "input_required" ? detailed.inputRequests : {};
  const changed = row.status === "input_required" ? changedQuestions(row) : [];
  now("changes", changed.join("\n"), () => changed.map((text) => element("p", { class: "changed-question" }, text)));
  now("question", JSON.stringify(requests), () => question(context, task, client, parts, requests));
  now("result", JSON.stringify([row.result, row.error]), () => result(row));
  const leaseLeft = Math.max(0, Math.ceil(((row.leaseUntilMs ?? 0) - Date.now()) / 1000));
  now("workers", JSON.stringify([row.runs, row.workState, row.environmentId, row.environmentId === null && leaseLeft]), () =>
    workersView(context, row, leaseLeft, (action) => act(action, client, parts)),
  );
}

function head({ row, detailed }, client, parts) {
  const isOpen = !TERMINAL.has(row.status);
  const cancel = () => act(() => client.cancel().then(() => announce("Cancelled.")), client, parts);
  const message = detailed?.statusMessage ?? row.statusMessage;
  return [
    element(
      "div",
      { class: "task-status", dataset: { news: row.status } },
      element(
        "h2",
        { tabindex: -1, dataset: { control: "status" } },
        statusChip(row.status),
        message && element("span", { dir: "auto" }, message),
      ),
      isOpen &&
        element(
          "button",
          { type: "button", class: "quiet", dataset: { control: "cancel" }, onclick: cancel },
          icon("cross"),
          "Cancel the task",
        ),
    ),
    element(
      "dl",
      { class: "state-facts" },
      [
        ["Arguments", element("code", {}, JSON.stringify(row.arguments))],
        ["Caller", row.principal?.subject ?? "anonymous"],
        ["Created", clockTime(row.createdAtMs)],
        ["Time to live ends", row.deadlineMs && clockTime(row.deadlineMs)],
      ]
        .filter(([, value]) => value)
        .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
    ),
  ];
}

function question({ store }, task, client, parts, requests) {
  if (Object.keys(requests).length === 0) return null;
  const round = { durationMs: 0, response: { body: { result: { resultType: "input_required", inputRequests: requests } } } };
  announce("The task asks a question.");
  const { node } = questionForm({
    round,
    roots: store.state.roots,
    send: (responses) => act(() => client.answer(requests, responses), client, parts),
  });
  node.dataset.news = uniqueId("question");
  return node;
}

function result({ result: found, error, status }) {
  const view = (part) => element("div", { dataset: { news: "result" } }, part);
  if (status === "completed" && found) return view(resultView({ durationMs: 0, response: { body: { result: found } } }));
  if (!error) return null;
  return view(element("div", { class: "result failed" }, heading("warning", "The task failed"), jsonView(error, { label: "error" })));
}
