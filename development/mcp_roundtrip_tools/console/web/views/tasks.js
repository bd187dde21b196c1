// The page of all tasks in the tables of the run.

import { element, fill } from "../dom.js";
import { clockTime, count } from "../format.js";
import { repeat } from "../repeat.js";

const REFRESH_MS = 1_500;

export const STATUS = {
  working: "working",
  input_required: "asks a question",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/** Return the page with the list of tasks, which follows them until the signal aborts. */
export function tasksPage({ api }, signal) {
  const place = element("div", {}, element("p", { class: "hint" }, "Loading…"));
  let shown = "";
  repeat(
    async () => {
      const { tasks } = await api.tasks();
      const next = JSON.stringify(tasks);
      if (next === shown) return;
      shown = next;
      fill(place, tasks.length === 0 ? empty() : table(tasks));
    },
    REFRESH_MS,
    signal,
    (error) => {
      shown = "";
      fill(place, element("p", { class: "error" }, error.message));
    },
  );
  return element(
    "article",
    { class: "tasks" },
    element(
      "header",
      { class: "page-head" },
      element("h1", { tabindex: -1 }, "Tasks"),
      element(
        "p",
        { class: "description" },
        "A task continues without its client: its journal is in a table. Open one to answer it, or to kill its worker.",
      ),
    ),
    place,
  );
}

function empty() {
  return element(
    "p",
    { class: "hint" },
    "No task yet. A tool with ",
    element("code", {}, 'task="optional"'),
    " becomes one at ",
    element("code", {}, "ctx.run_as_task()"),
    " if the client declares tasks.",
  );
}

function table(tasks) {
  const columns = ["Tool", "Status", "Progress", "Workers", "Caller", "Created"];
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tasks" },
    element(
      "table",
      {},
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          columns.map((name) => element("th", { scope: "col" }, name)),
        ),
      ),
      element("tbody", {}, tasks.map(row)),
    ),
  );
}

function row(task) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("a", { href: `#/tasks/${encodeURIComponent(task.id)}` }, task.tool ?? task.id)),
    element("td", {}, statusChip(task.status)),
    element("td", { dir: "auto" }, task.statusMessage ?? ""),
    element("td", {}, count(task.runCount, "run"), task.environmentId && [", now ", element("code", {}, task.environmentId)]),
    element("td", {}, task.principal?.subject ?? "anonymous"),
    element("td", {}, clockTime(task.createdAtMs)),
  );
}

/** Return the status of a task as a chip. */
export function statusChip(status) {
  const kinds = { input_required: "asked", completed: "answered", failed: "failed", working: "ran", cancelled: "replayed" };
  return element("span", { class: `chip ${kinds[status] ?? ""}` }, STATUS[status] ?? status);
}
