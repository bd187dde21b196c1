// The workers of a task: what each replayed and ran, and the loss of the running one.

import { announce, element, icon } from "../dom.js";
import { clockTime, duration } from "../format.js";
import { journalTable, mark } from "./journal.js";

const TRIGGERS = {
  async: "asynchronous invocation",
  retry: "Lambda’s retry",
  queue: "message of the queue",
  invoke: "invocation",
  direct: "invocation",
};

/**
 * Return a card for each worker, and what happens next.
 * @param {object} row the task of the console API
 * @param {number} leaseLeft seconds until the lease ends
 * @param {(action: () => Promise<void>) => void} act carries out what was clicked, and shows the task again
 */
export function workersView(context, row, leaseLeft, act) {
  const { runs = [] } = row;
  return element(
    "section",
    { class: "workers" },
    element("h2", { tabindex: -1, dataset: { control: "workers" } }, "Workers"),
    runs.length === 0 && element("p", { class: "hint" }, "No worker has run yet."),
    element(
      "ol",
      { class: "timeline" },
      runs.map((run, index) => workerCard(context, runs, index, act)),
    ),
    isLost(row) && leaseLeft > 0 ? lost(context, row, leaseLeft, act) : nextView(row),
  );
}

const isLost = ({ workState, environmentId }) => workState === "leased" && environmentId === null;

/** A lease protects against two workers at once: before it ends, a lost worker looks like a slow one. */
function lost({ api }, row, leaseLeft, act) {
  const expire = () => act(() => api.expireLease(row.id));
  return element(
    "div",
    { class: "lost", dataset: { news: "lost worker" } },
    element(
      "p",
      { tabindex: -1, dataset: { control: "lost" } },
      `The worker is lost. Its lease ends in ${leaseLeft} s; then a poll, Lambda’s retry or a message starts the next one.`,
    ),
    element("button", { type: "button", dataset: { control: "expire" }, onclick: expire }, "Do not wait for the lease"),
  );
}

function nextView(row) {
  const lost = row.runs?.at(-1)?.error ? { tabindex: -1, dataset: { news: "lost worker", control: "lost" } } : {};
  return element("p", { class: "hint next", ...lost }, next(row));
}

/** Say what the task waits for. */
function next({ workState, environmentId, wakeAtMs, runs = [] }) {
  if (environmentId !== null) return null;
  if (workState === "ready" && runs.at(-1)?.error)
    return "The worker was lost before it claimed the task. Lambda repeats its invocation after a minute.";
  switch (workState) {
    case "leased":
      return "The lease has ended: the next worker can claim the task.";
    case "ready":
      return "The task waits for a worker.";
    case "awaiting":
      return "The task waits for an answer. No worker runs meanwhile.";
    case "sleeping":
      return `The task sleeps until ${clockTime(wakeAtMs)}. No worker runs meanwhile.`;
    default:
      return null;
  }
}

function workerCard({ api }, runs, index, act) {
  const run = runs[index];
  const isRunning = run.endedAtMs === null;
  const replaces = runs[index - 1]?.error; // the user waits for the worker that replaces a lost one
  const kill = () =>
    act(async () => {
      await api.kill(run.environmentId);
      announce(`${run.environmentId} was killed.`);
    });
  return element(
    "li",
    {
      class: "round worker",
      dataset: {
        outcome: isRunning ? "running" : run.error ? "failed" : "completed",
        ...(replaces && { news: `worker ${index + 1}` }),
      },
    },
    element(
      "div",
      { class: "round-head" },
      element("h3", { tabindex: -1, dataset: { control: `worker ${index + 1}` } }, `Worker ${index + 1}`),
      element("span", { class: "chips" }, outcome(run, isRunning), marksOf(run)),
      element(
        "span",
        { class: "facts" },
        element(
          "span",
          { class: run.isNewEnvironment ? "environment new" : "environment" },
          run.environmentId,
          " ",
          run.isNewEnvironment ? "new" : "warm",
        ),
        element("span", {}, TRIGGERS[run.trigger] ?? run.trigger),
        !isRunning && element("span", {}, duration(run.endedAtMs - run.startedAtMs)),
        element("time", {}, clockTime(run.startedAtMs)),
      ),
    ),
    run.error && element("p", { class: "error" }, run.error),
    isRunning &&
      element(
        "div",
        { class: "actions kill" },
        element(
          "button",
          { type: "button", class: "danger", dataset: { control: "kill" }, onclick: kill },
          icon("cross"),
          "Kill this worker now",
        ),
        element("span", { class: "hint" }, "SIGKILL, as if its computer were lost"),
      ),
    run.journal.length > 0 &&
      element("div", { class: "round-body" }, journalTable(run.journal, { label: `Journal of worker ${index + 1}` })),
  );
}

function outcome(run, isRunning) {
  if (isRunning) return element("span", { class: "chip status-running" }, "running");
  return run.error
    ? element("span", { class: "chip failed" }, icon("warning"), "lost")
    : element("span", { class: "chip" }, "ended");
}

/** Return how many entries have each mark. */
function marksOf({ journal }) {
  return ["replayed", "answered", "ran", "asked"].flatMap((name) => {
    const number = journal.filter((entry) => entry.mark === name).length;
    if (number === 0) return [];
    const chip = mark(name);
    chip.append(` ${number}`);
    return [chip];
  });
}
