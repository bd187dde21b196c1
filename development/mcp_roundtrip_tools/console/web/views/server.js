// What happened on the server during a round: execution environments, service calls and log lines.

import { h } from "../dom.js";
import { SERVICES, invocationsOf, logLinesOf } from "../exchange.js";
import { count, duration } from "../format.js";
import { meaningOf } from "../words.js";
import { logView } from "./log.js";

/** Return each invocation and each service call with its duration, and all log lines as the functions wrote them. */
export function serverView(exchange) {
  const rows = (exchange.invocations ?? []).flatMap((each) => rowsOf(each, 0));
  if (rows.length === 0) return h("p.hint", "No function was invoked.");
  const failed = invocationsOf(exchange).filter((each) => each.failed || each.error);
  const lines = logLinesOf(exchange).map((line) => [line.function, line.text]);
  return [
    h("ol.server-rows", rows.map(row)),
    failed.map(({ environmentId, error }) => h("p.error", `${environmentId}: ${error ?? "the invocation failed"}`)),
    lines.length > 0 && h("details", h("summary", count(lines.length, "log line")), logView(lines, "All log lines")),
  ];
}

function rowsOf(invocation, depth) {
  const { environmentId, isNewEnvironment: isNew, initMs, durationMs, serviceCalls, invocations } = invocation;
  // An invocation of a function says all that the call of the Lambda API says.
  const own = invocations.length > 0 ? serviceCalls.filter((call) => call.service !== "lambda") : serviceCalls;
  const calls = own.map(({ service, operation, detail, status, durationMs: ms }) => ({
    depth: depth + 1, label: `${SERVICES[service] ?? service} ${operation}`, durationMs: ms,
    note: [detail, status >= 400 && status].filter(Boolean).join(" · "),
  }));
  const inner = [...calls, ...invocations.flatMap((each) => rowsOf(each, depth + 1))];
  const note = isNew ? `new${initMs ? `, init ${duration(initMs)}` : ""}` : "warm";
  return [{ depth, label: environmentId, note, durationMs }, ...inner];
}

function row({ depth, label, note, durationMs }) {
  const name = h("span.row-label", label, note && h("span.note", note));
  // A property of the style object, unlike a style attribute, is allowed by the content security policy.
  name.style.setProperty("--depth", depth);
  return h("li", name, h("span.row-time", duration(durationMs)));
}

/** Return an execution environment, and whether it is new. */
export function environmentView({ environmentId, isNewEnvironment }) {
  const age = isNewEnvironment ? "new" : "warm";
  return h(`span.environment.${age}`, { title: meaningOf("environment") },
    environmentId, h("span.chip", { title: meaningOf(age) }, age));
}
