// The workers of a task: what each replayed and ran, and the loss of the running one.

import { announce, button, h, icon } from "../dom.js";
import { clockTime, duration } from "../format.js";
import { explained, meaningOf } from "../words.js";
import { journalList, mark } from "./journal.js";
import { environmentView } from "./server.js";

const TRIGGERS = { async: "asynchronous invocation", retry: "Lambda’s retry", queue: "message of the queue" };

/**
 * Return a card for each worker, and what happens next.
 * @param {object} row the task of the console API
 * @param {number} leaseLeft seconds until the lease ends
 * @param {(action: () => Promise<void>) => void} act carries out what was clicked, and shows the task again
 */
export function workersView({ api }, row, leaseLeft, act) {
  const isLost = row.workState === "leased" && row.environmentId === null;
  return h("section.workers",
    h("h2", { tabindex: -1, dataset: { control: "workers" }, title: meaningOf("worker") }, "Workers"),
    row.runs.length === 0 && h("p.hint", "No worker has run yet."),
    h("ol.timeline", row.runs.map((run, index) => workerCard(api, row.runs, index, act))),
    isLost && leaseLeft > 0 ? lost(api, row, leaseLeft, act) : nextView(row));
}

/** A lease protects against two workers at once: before it ends, a lost worker looks like a slow one. */
function lost(api, { id }, leaseLeft, act) {
  const after = ` ends in ${leaseLeft} s; then a poll, Lambda’s retry or a message starts the next one.`;
  return h("div.lost", { dataset: { news: "lost worker" } },
    h("p", { tabindex: -1, dataset: { control: "lost" } }, "The worker is lost. Its ", explained("lease"), after),
    button("Do not wait for the lease", () => act(() => api.expireLease(id)), {
      dataset: { control: "expire" }, title: "Ends the lease in the table, so that the next poll starts a worker",
    }));
}

function nextView(row) {
  const lost = row.runs.at(-1)?.error ? { tabindex: -1, dataset: { news: "lost worker", control: "lost" } } : {};
  return h("p.hint.next", lost, next(row));
}

/** Say what the task waits for. */
function next({ workState, environmentId, wakeAtMs, runs }) {
  if (environmentId !== null) return null;
  if (workState === "ready" && runs.at(-1)?.error)
    return "The worker was lost before it claimed the task. Lambda repeats its invocation after a minute.";
  return {
    leased: "The lease has ended: the next worker can claim the task.",
    ready: "The task waits for a worker.",
    awaiting: "The task waits for an answer. No worker runs meanwhile.",
    sleeping: `The task sleeps until ${clockTime(wakeAtMs)}. No worker runs meanwhile.`,
  }[workState];
}

function workerCard(api, runs, index, act) {
  const { durationMs, startedAtMs, error, environmentId, trigger, journal, ...run } = runs[index];
  const isRunning = durationMs === null;
  const name = `worker ${index + 1}`;
  const isReplacement = Boolean(runs[index - 1]?.error); // the user waits for the worker that replaces a lost one
  const outcome = isRunning ? "running" : error ? "failed" : "completed";
  async function kill() {
    await api.kill(environmentId);
    announce(`${environmentId} was killed.`);
  }
  return h("li.round.worker", { dataset: { outcome, ...(isReplacement && { news: name }) } },
    h("div.round-head",
      h("h3", { tabindex: -1, dataset: { control: name } }, `Worker ${index + 1}`),
      h("span.chips", outcomeChip(outcome), marksOf(journal)),
      h("span.facts",
        environmentView({ environmentId, ...run }), h("span", TRIGGERS[trigger] ?? "invocation"),
        !isRunning && h("span", duration(durationMs)), h("time", clockTime(startedAtMs)))),
    error && h("p.error", error),
    isRunning && h("div.actions.kill",
      button([icon("cross"), "Kill this worker now"], () => act(kill), { class: "danger", dataset: { control: "kill" } }),
      h("span.hint", "SIGKILL, as if its computer were lost")),
    journal.length > 0 && h("div.round-body", journalList(journal, `Journal of ${name}`)));
}

function outcomeChip(outcome) {
  if (outcome === "failed") return h("span.chip.failed", { title: meaningOf("lost") }, icon("warning"), "lost");
  return outcome === "running" ? h("span.chip.status-running", "running") : h("span.chip", "ended");
}

/** Return how many entries have each mark. */
function marksOf(journal) {
  return ["replayed", "answered", "ran", "asked"].map((name) => {
    const number = journal.filter((entry) => entry.mark === name).length;
    return number > 0 && mark(name, h("span", number));
  });
}
