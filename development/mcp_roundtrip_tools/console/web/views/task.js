// Tasks: the list of all in the tables of the run, and one with its questions, its result and its workers.

import { resultOf } from "../rounds.js";
import { announce, button, factList, fill, h, icon, rebuild, uniqueId } from "../dom.js";
import { clockTime, count, shortJson } from "../format.js";
import { awaitNews } from "../news.js";
import { repeat } from "../repeat.js";
import { explained } from "../words.js";
import { jsonView } from "./json_view.js";
import { questionForm } from "./question.js";
import { failure, resultView } from "./result.js";
import { workersView } from "./workers.js";

const REFRESH_MS = 700;
const LIST_REFRESH_MS = 1_500;
const POLL_MS = 2_000;
const GONE = "This page no longer follows the task:";
const TERMINAL = new Set(["completed", "failed", "cancelled"]);

/** Status of a task -> its words, and the colour of its chip. */
const STATUS = {
  working: ["working", "ran"], input_required: ["asks a question", "asked"], completed: ["completed", "answered"],
  failed: ["failed", "failed"], cancelled: ["cancelled", "replayed"],
};

function statusChip(status) {
  const [words, kind] = STATUS[status] ?? [status, ""];
  return h("span", { class: `chip ${kind}` }, words);
}

// -- the list -------------------------------------------------------------------------------------------------------------

/** Return the page with the list of tasks, which follows them until the signal aborts. */
export function tasksPage({ api }, signal) {
  const place = h("div", h("p.hint", "Loading…"));
  let shown = "";
  async function refresh() {
    const { tasks } = await api.tasks();
    const next = JSON.stringify(tasks);
    if (next === shown) return;
    shown = next;
    fill(place, tasks.length > 0 ? h("ul.rows", tasks.map(row)) : h("p.hint",
      "No task yet. A tool with ", h("code", 'task="optional"'), " becomes one at ", h("code", "ctx.run_as_task()"),
      " if the client declares tasks."));
  }
  repeat(refresh, LIST_REFRESH_MS, signal, (error) => {
    shown = "";
    fill(place, h("p.error", error.message));
  });
  return h("article.tasks",
    h("header.page-head",
      h("h1", { tabindex: -1 }, "Tasks"),
      h("p.description",
        "A task continues without its client: its ", explained("journal"), " is in a table. Open one to answer it, or to kill its ",
        explained("worker"), ".")),
    place);
}

function row({ id, tool, arguments: given, status, statusMessage, runCount, environmentId, caller, createdAtMs }) {
  return h("li",
    h("a", { href: `#/tasks/${encodeURIComponent(id)}` }, tool ?? id), h("code.hint", shortJson(given)),
    statusChip(status), statusMessage && h("span", { dir: "auto" }, statusMessage),
    h("span.facts",
      h("span", `created at ${clockTime(createdAtMs)}`), h("span", count(runCount, "worker")),
      environmentId && h("code", environmentId), h("span", caller ?? "anonymous")));
}

// -- one task -------------------------------------------------------------------------------------------------------------

/** Return the page of a task. */
export function taskPage(context, id, signal) {
  queueMicrotask(awaitNews); // the page has been opened to follow the task
  return h("article.task",
    h("header.page-head",
      h("p.eyebrow", h("a", { href: "#/tasks" }, "Tasks")),
      h("h1", { tabindex: -1 }, originOf(context.store, id)?.call.name ?? "Task"),
      h("p", h("code", id))),
    taskView(context, id, signal));
}

/** Return the console's call and the profile of the round that became a task; undefined if another client created it. */
function originOf(store, id) {
  const rounds = store.state.calls.flatMap((call) => call.rounds.map((round) => ({ call, round, profile: round.profile })));
  return rounds.find(({ round }) => resultOf(round)?.taskId === id);
}

/** Return what a task does, until the signal aborts. */
export function taskView(context, id, signal) {
  const [head, question, result, workers] = Array.from({ length: 4 }, () => h("div"));
  const parts = { head, question, result, workers };
  const [problem, refusal] = [h("p.error", { hidden: true }), h("p.error", { role: "status", hidden: true })];
  const { call, profile = context.store.state.profile } = originOf(context.store, id) ?? {};
  const task = {
    id, profile, call: call?.taskId === id ? call : null, // an experiment with the call can have made a task of its own
    row: null, detailed: null, nextPollMs: 0, polledAtMs: null, refusedPoll: null, shown: {},
  };
  const client = clientOf(context, task);
  const gone = new AbortController();

  async function refresh() {
    task.row = await context.api.task(id);
    if (isDue(task)) await client.poll();
    showProblem(problem, task.refusedPoll === null ? "" : `The poll was refused: ${task.refusedPoll}`);
    showTask(context, task, client, parts, act);
    return isOver(task);
  }

  /** A task that is not there does not come back. Other errors can end, so the task is read again. */
  function report(error) {
    const isGone = error.status === 404;
    showProblem(problem, isGone ? `${GONE} ${error.message}` : error.message);
    if (isGone) gone.abort();
  }

  /** Carry out what the user clicked. A refusal stays on the page until the next click. */
  async function act(action) {
    awaitNews();
    showProblem(refusal, "");
    await action().catch((error) => showProblem(refusal, error.message));
    await refresh().catch(report);
  }

  repeat(refresh, REFRESH_MS, AbortSignal.any([signal, gone.signal]), report);
  return h("div.task-body", head, problem, refusal, question, result, workers);
}

function showProblem(place, text) {
  place.hidden = text === "";
  place.dataset.news = text;
  fill(place, text);
}

/** Whether nothing about the task changes any more. A client whose poll is refused never sees the end. */
function isOver({ row, detailed, refusedPoll }) {
  const isEnded = TERMINAL.has(row.status) && row.environmentId === null;
  return isEnded && (TERMINAL.has(detailed?.status) || refusedPoll !== null);
}

/** A client polls a task that works. One that waits for an answer is read again when it has changed. */
function isDue({ row, detailed, nextPollMs, polledAtMs }) {
  const isWaiting = [detailed, row].every((each) => each?.status === "input_required") && row.updatedAtMs === polledAtMs;
  return !isWaiting && Date.now() >= nextPollMs;
}

/** Return the requests of the task's client. */
function clientOf({ client, store }, task) {
  const request = (method, params) => client.request(method, { taskId: task.id, ...params }, { profile: task.profile });
  const notify = () => store.notify(`call:${task.call.id}`);
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
      notify();
    },
    async answer(requests, responses) {
      await request("tasks/update", { inputResponses: responses });
      task.nextPollMs = 0;
      if (!task.call) return;
      task.call.taskUpdates.push({ requests, responses });
      notify();
    },
    async cancel() {
      await request("tasks/cancel");
      task.nextPollMs = 0;
      announce("Cancelled.");
    },
  };
}

/** Build the parts again that have changed. */
function showTask(context, task, client, parts, act) {
  const { row, detailed } = task;
  const requests = detailed?.status === "input_required" ? detailed.inputRequests : {};
  const leaseLeft = Math.max(0, Math.ceil(((row.leaseUntilMs ?? 0) - Date.now()) / 1000));
  const isIdle = row.environmentId === null;
  const views = {
    head: [[row.status, row.statusMessage, detailed?.statusMessage], () => head(task, client, act)],
    question: [requests, () => question(context, client, act, requests)],
    result: [[row.result, row.error], () => result(row)],
    workers: [
      [row.runs, row.workState, row.environmentId, isIdle && leaseLeft], () => workersView(context, row, leaseLeft, act),
    ],
  };
  for (const [part, [content, view]] of Object.entries(views)) {
    const key = JSON.stringify(content);
    if (task.shown[part] === key) continue;
    task.shown[part] = key;
    rebuild(parts[part], view());
  }
}

function head({ row, detailed }, client, act) {
  const message = detailed?.statusMessage ?? row.statusMessage;
  const attributes = { class: "quiet", dataset: { control: "cancel" } };
  const cancel = button([icon("cross"), "Cancel the task"], () => act(client.cancel), attributes);
  return h("div.task-head",
    h("div.task-status", { dataset: { news: row.status } },
      h("h2", { tabindex: -1, dataset: { control: "status" } },
        statusChip(row.status), message && h("span", { dir: "auto" }, message)),
      !TERMINAL.has(row.status) && cancel),
    factList([
      ["Arguments", h("code", JSON.stringify(row.arguments))],
      ["Caller", row.caller ?? "anonymous"],
      ["Created", clockTime(row.createdAtMs)],
      [explained("Time to live ends"), row.deadlineMs && clockTime(row.deadlineMs)],
    ]));
}

function question({ store }, client, act, requests) {
  if (Object.keys(requests).length === 0) return null;
  announce("The task asks a question.");
  const send = (responses) => act(() => client.answer(requests, responses));
  const form = questionForm({ requests, roots: store.state.roots, send });
  form.dataset.news = uniqueId("question");
  return form;
}

function result({ result: found, error, status }) {
  const news = { dataset: { news: "result" } };
  const round = { durationMs: 0, response: { body: { result: found } } };
  if (status === "completed" && found) return h("div", news, resultView(round));
  return error && h("div", news, failure("The task failed", jsonView(error, "error")));
}
