// What happened on the server during a round: execution environments and service calls on a common time axis.

import { h } from "../dom.js";
import { SERVICES, invocationsOf, logLinesOf } from "../exchange.js";
import { count, duration } from "../format.js";
import { meaningOf } from "../words.js";
import { logView } from "./log.js";

/** Return a chart with a bar for each invocation and each service call, and all log lines as the functions wrote them. */
export function serverView(exchange) {
  const rows = (exchange.invocations ?? []).flatMap((each) => rowsOf(each, 0));
  if (rows.length === 0) return h("p.hint", "No function was invoked.");
  const start = Math.min(...rows.map((row) => row.startedAtMs));
  const end = Math.max(...rows.map((row) => row.startedAtMs + (row.durationMs ?? 0)), start + 1);
  const failed = invocationsOf(exchange).filter((each) => each.failed || each.error);
  const lines = logLinesOf(exchange).map((line) => [line.function, line.text]);
  return [
    h("ol.waterfall", rows.map((row) => waterfallRow(row, start, end - start))),
    failed.map(({ environmentId, error }) => h("p.error", `${environmentId}: ${error ?? "the invocation failed"}`)),
    lines.length > 0 && h("details", h("summary", count(lines.length, "log line")), logView(lines, "All log lines")),
  ];
}

function rowsOf(invocation, depth) {
  const { environmentId, isNewEnvironment: isNew, initMs, startedAtMs, durationMs, serviceCalls, invocations } = invocation;
  // An invocation of a function says all that the call of the Lambda API says.
  const own = invocations.length > 0 ? serviceCalls.filter((call) => call.service !== "lambda") : serviceCalls;
  const calls = own.map(({ service, operation, detail, status, ...times }) => ({
    kind: "service", depth: depth + 1, label: `${SERVICES[service] ?? service} ${operation}`, ...times,
    note: [detail, status >= 400 && status].filter(Boolean).join(" · "),
  }));
  const inner = [...calls, ...invocations.flatMap((each) => rowsOf(each, depth + 1))];
  const note = isNew ? `new${initMs ? `, init ${duration(initMs)}` : ""}` : "warm";
  const kind = isNew ? "invocation.new" : "invocation";
  return [{ kind, depth, label: environmentId, initMs: isNew ? initMs : 0, note, startedAtMs, durationMs }, ...inner];
}

function waterfallRow({ kind, depth, label, note, startedAtMs, durationMs, initMs }, start, length) {
  const bar = (name, ms) => {
    const node = h(`span.${name}`);
    // Properties of the style object, unlike a style attribute, are allowed by the content security policy.
    node.style.setProperty("--from", `${(100 * (startedAtMs - start)) / length}%`);
    node.style.setProperty("--width", `${(100 * ms) / length}%`);
    return node;
  };
  const name = h("span.row-label", label, note && h("span.note", note));
  name.style.setProperty("--depth", depth);
  const bars = [bar("bar", durationMs ?? 0), initMs > 0 && bar("bar.init", Math.min(initMs, durationMs ?? initMs))];
  return h(`li.${kind}`, name, h("span.track", bars), h("span.row-time", duration(durationMs)));
}

/** Return an execution environment, and whether it is new. */
export function environmentView({ environmentId, isNewEnvironment }) {
  const age = isNewEnvironment ? "new" : "warm";
  return h(`span.environment.${age}`, { title: meaningOf("environment") },
    environmentId, h("span.chip", { title: meaningOf(age) }, age));
}
