// What happens in the runner: requests of all clients, and the invocations of workers. Newest first.

import { element, fill, icon } from "../dom.js";
import { clockTime, duration } from "../format.js";
import { repeat } from "../repeat.js";
import { changedQuestions } from "./changed_questions.js";
import { jsonView } from "./json_view.js";
import { serverView } from "./server.js";

const WAIT_MS = 20_000;
const PAUSE_MS = 250;
const MAX_ROWS = 300;
const WAITING = "Waiting for a request…";
const TRIGGERS = { async: "asynchronous", retry: "retry", queue: "queue", direct: "direct" };

/** Return the page, which follows the activity until the signal aborts. */
export function activityPage({ api }, signal) {
  const rows = new Map();
  const list = element("ol", { class: "activity-list" });
  const hint = element("p", { class: "hint" }, WAITING);
  const own = element("input", { type: "checkbox", checked: true, onchange: filter });
  let after = 0;

  function filter() {
    list.classList.toggle("without-own", !own.checked);
  }

  repeat(
    async () => {
      const changes = await api.activity(after, WAIT_MS, signal);
      if (changes.sequence < after) {
        rows.clear(); // another run of the server
        fill(list);
      }
      after = changes.sequence;
      const found = [...changes.exchanges.map(request), ...changes.invocations.map(invocation)];
      for (const row of found.sort((one, other) => one.startedAtMs - other.startedAtMs)) show(row);
      hint.hidden = rows.size > 0;
      fill(hint, WAITING);
    },
    PAUSE_MS,
    signal,
    (error) => {
      hint.hidden = false;
      fill(hint, error.message);
    },
  );

  function show(row) {
    const known = rows.get(row.id);
    if (known) known.update(row);
    else {
      const view = rowView(api, row);
      rows.set(row.id, view);
      list.prepend(view.node);
    }
    while (rows.size > MAX_ROWS) {
      const [oldest, view] = rows.entries().next().value;
      view.node.remove();
      rows.delete(oldest);
    }
  }

  return element(
    "article",
    { class: "activity" },
    element(
      "header",
      { class: "page-head" },
      element("h1", { tabindex: -1 }, "Activity"),
      element(
        "p",
        { class: "description" },
        "Requests of all clients, and invocations that no request waits for, such as workers. The last 1,000 are kept.",
      ),
    ),
    element("label", { class: "option" }, own, "Show the requests of this console"),
    hint,
    list,
  );
}

/** Return what a row shows of a request. */
function request(each) {
  const what = each.rpcMethod ?? `${each.method} ${each.path}`;
  return {
    id: each.id,
    startedAtMs: each.startedAtMs,
    durationMs: each.durationMs,
    isExchange: true,
    isOwn: each.isFromConsole,
    what,
    name: each.name,
    from: each.client ?? "",
    environment: each.environmentId,
    isNew: each.isNewEnvironment,
    outcome: requestOutcome(each),
  };
}

function requestOutcome({ outcome, asked = [], errorCode, errorMessage, status, failed }) {
  if (outcome === "challenge") return ["", "asks for a sign-in"];
  if (outcome === "error") return ["failed", `${errorCode} ${errorMessage}`];
  if (outcome === "tool_error") return ["failed", "tool error"];
  if (asked.length > 0) return ["asked", `asked ${asked.join(", ")}`]; // also a poll of a task
  if (outcome === "input_required") return ["replayed", "continues"];
  if (outcome === "task") return ["ran", "became a task"];
  if (failed || status >= 400) return ["failed", `HTTP ${status}`];
  return ["", status === null ? "running" : ""];
}

/** Return what a row shows of an invocation. */
function invocation(each) {
  return {
    id: each.id,
    startedAtMs: each.startedAtMs,
    durationMs: each.durationMs,
    isExchange: false,
    isOwn: false,
    tree: each,
    what: TRIGGERS[each.trigger] ?? each.trigger,
    name: each.function,
    from: "",
    environment: each.environmentId,
    isNew: each.isNewEnvironment,
    outcome: each.failed ? ["failed", each.error ?? "failed"] : ["", each.durationMs === null ? "running" : ""],
  };
}

function rowView(api, first) {
  const head = element("summary", { class: "activity-row" });
  const body = element("div", { class: "activity-body" });
  const node = element("li", {}, element("details", { ontoggle: open }, head, body));
  let row = first;

  async function open(event) {
    if (!event.target.open) return;
    fill(body, element("p", { class: "hint" }, "Loading…"));
    try {
      fill(body, details(row.isExchange ? await api.exchange(row.id) : { invocations: [row.tree] }, row));
    } catch (error) {
      fill(body, element("p", { class: "error" }, error.message));
    }
  }

  function update(next) {
    row = next;
    node.classList.toggle("own", row.isOwn);
    fill(head, summary(row));
  }

  update(first);
  return { node, update };
}

function summary({ startedAtMs, durationMs, what, name, from, environment, isNew, outcome: [kind, text] }) {
  return [
    icon("chevron"),
    element("time", {}, clockTime(startedAtMs)),
    element("span", { class: "what" }, what, name && element("code", { dir: "auto" }, name)),
    text && element("span", { class: `chip ${kind}` }, text),
    element(
      "span",
      { class: "facts" },
      from && element("span", {}, from),
      environment && element("span", { class: isNew ? "environment new" : "environment" }, environment, isNew ? " new" : ""),
      durationMs !== null && element("span", {}, duration(durationMs)),
    ),
  ];
}

function details(exchange, { isExchange }) {
  const [invoked] = exchange.invocations ?? [];
  return [
    changedQuestions(exchange).map((text) => element("p", { class: "changed-question" }, text)),
    serverView(exchange),
    messages(isExchange ? [exchange.requestBody, exchange.responseBody] : [invoked.payload, invoked.response]),
  ];
}

/** The bodies of a request or of an invocation, shown when they are opened. */
function messages([sent, received]) {
  return [
    ["Request", sent],
    ["Response", received],
  ].map(([label, body]) => {
    if (body === null || body === undefined) return null;
    const place = element("div", {});
    return element(
      "details",
      {
        ontoggle: () => {
          if (!place.hasChildNodes()) fill(place, jsonView(body, { label: label.toLowerCase() }));
        },
      },
      element("summary", {}, label),
      place,
    );
  });
}
