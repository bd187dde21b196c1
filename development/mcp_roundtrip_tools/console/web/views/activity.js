// What happens in the runner: requests of other clients, and the invocations of workers. Newest first.

import { fill, h, icon, lazyDetails } from "../dom.js";
import { clockTime, duration } from "../format.js";
import { repeat } from "../repeat.js";
import { jsonView } from "./json_view.js";
import { environmentView, serverView } from "./server.js";

const REFRESH_MS = 1_000;
const MAX_ROWS = 300;
const WAITING = "Waiting for a request…";
const TRIGGERS = { async: "asynchronous", retry: "retry", queue: "queue", direct: "direct" };

/** Return the page, which follows the activity until the signal aborts. */
export function activityPage({ api }, signal) {
  const rows = new Map();
  const list = h("ol.activity-list.without-own");
  const hint = h("p.hint", WAITING);
  const own = h("input", { type: "checkbox", onchange: showOwn });
  let after = 0;

  function showOwn() {
    list.classList.toggle("without-own", !own.checked);
    hint.hidden = list.querySelector(own.checked ? "li" : "li:not(.own)") !== null;
  }

  async function follow() {
    const changes = await api.activity(after);
    if (changes.sequence < after) {
      rows.clear(); // another run of the server
      fill(list);
    }
    after = changes.sequence;
    const found = [...changes.exchanges.map(requestRow), ...changes.invocations.map(invocationRow)];
    for (const row of found.sort((one, other) => one.startedAtMs - other.startedAtMs)) show(row);
    fill(hint, WAITING);
    showOwn();
  }

  function show(row) {
    if (!rows.has(row.id)) {
      rows.set(row.id, rowView(api));
      list.prepend(rows.get(row.id).node);
    }
    rows.get(row.id).update(row);
    while (rows.size > MAX_ROWS) {
      const [oldest, view] = rows.entries().next().value;
      view.node.remove();
      rows.delete(oldest);
    }
  }

  repeat(follow, REFRESH_MS, signal, (error) => {
    hint.hidden = false;
    fill(hint, error.message);
  });
  return h("article.activity",
    h("header.page-head",
      h("h1", { tabindex: -1 }, "Activity"),
      h("p.description",
        "Requests of other clients, and invocations that no request waits for, such as workers. ",
        `The list has the newest ${MAX_ROWS}, hidden requests of this console included.`)),
    h("label.choice", own, "Show the requests of this console, too"), hint, list);
}

function requestRow({ isFromConsole, kind, subject, details, failure, ...each }) {
  const outcome = failure ? ["failed", failure] : ["", each.durationMs === null ? "running" : details.join(" · ")];
  return { ...each, isOwn: isFromConsole, what: kind, name: subject, outcome, isExchange: true };
}

function invocationRow(each) {
  const outcome = each.failed ? ["failed", each.error ?? "failed"] : ["", each.durationMs === null ? "running" : ""];
  return { ...each, what: TRIGGERS[each.trigger] ?? each.trigger, name: each.function, outcome };
}

function rowView(api) {
  const [head, body] = [h("summary.activity-row"), h("div.activity-body")];
  const node = h("li", h("details", { ontoggle: open }, head, body));
  let row;

  async function open(event) {
    if (!event.target.open) return;
    fill(body, h("p.hint", "Loading…"));
    try {
      fill(body, row.isExchange ? exchangeView(await api.exchange(row.id)) : invocationView(row));
    } catch (error) {
      fill(body, h("p.error", error.message));
    }
  }

  function update(next) {
    row = next;
    node.classList.toggle("own", row.isOwn === true);
    fill(head, summary(row));
  }

  return { node, update };
}

function summary({ startedAtMs, durationMs, what, name, client, environmentId, isNewEnvironment, outcome: [kind, text] }) {
  return [
    icon("chevron"), h("time", clockTime(startedAtMs)), h("span.what", what, name && h("code", { dir: "auto" }, name)),
    text && h("span", { class: `chip ${kind}` }, text),
    h("span.facts", client && h("span", client), environmentId && environmentView({ environmentId, isNewEnvironment }),
      durationMs !== null && h("span", duration(durationMs))),
  ];
}

function exchangeView(exchange) {
  const { requestBody, responseBody } = exchange;
  return [serverView(exchange), bodyView("Request", requestBody), bodyView("Response", responseBody)];
}

function invocationView(invocation) {
  const { payload, response } = invocation;
  return [serverView({ invocations: [invocation] }), bodyView("Request", payload), bodyView("Response", response)];
}

function bodyView(label, body) {
  return body !== null && body !== undefined && lazyDetails(label, () => jsonView(body, label.toLowerCase()));
}
