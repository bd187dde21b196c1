// What happened on the server during a round: execution environments and service calls on a common time axis.

import { element } from "../dom.js";
import { SERVICES, invocationsOf, logLinesOf } from "../exchange.js";
import { count, duration } from "../format.js";
import { logLine } from "./round_log.js";

/** Return a chart with a bar for each invocation and each service call. */
export function serverView(exchange) {
  const rows = (exchange.invocations ?? []).flatMap((each) => rowsOf(each, 0));
  if (rows.length === 0) return element("p", { class: "hint" }, "No function was invoked.");
  const start = Math.min(...rows.map((row) => row.startedAtMs));
  const end = Math.max(...rows.map((row) => row.startedAtMs + (row.durationMs ?? 0)), start + 1);
  return [
    element("ol", { class: "waterfall" }, rows.map((row) => waterfallRow(row, start, end - start))),
    invocationsOf(exchange).filter((each) => each.failed || each.error).map((each) =>
      element("p", { class: "error" }, `${each.environmentId}: ${describeError(each.error)}`)),
    logView(logLinesOf(exchange)),
  ];
}

/** All log lines as the functions wrote them, in the order of time. */
function logView(lines) {
  if (lines.length === 0) return null;
  return element("details", {}, element("summary", {}, count(lines.length, "log line")),
    element("div", { class: "logs", tabindex: 0, role: "region", "aria-label": "All log lines" },
      lines.map((line) => logLine(line.function, line.text))));
}

function rowsOf(invocation, depth) {
  const { environmentId, isNewEnvironment, initMs, serviceCalls = [], invocations = [] } = invocation;
  // An invocation of a function says all that the call of the Lambda API says.
  const own = invocations.length > 0 ? serviceCalls.filter((call) => call.service !== "lambda") : serviceCalls;
  const inner = [
    ...own.map((call) => ({
      kind: "service", depth: depth + 1, startedAtMs: call.startedAtMs, durationMs: call.durationMs,
      label: `${SERVICES[call.service] ?? call.service} ${call.operation}`,
      note: [call.detail, isFailure(call.status) && call.status].filter(Boolean).join(" · "),
    })),
    ...invocations.flatMap((each) => rowsOf(each, depth + 1)),
  ];
  return [{
    kind: isNewEnvironment ? "invocation new" : "invocation", depth, label: environmentId,
    initMs: isNewEnvironment ? initMs ?? 0 : 0,
    note: isNewEnvironment ? `new${initMs ? `, init ${duration(initMs)}` : ""}` : "warm",
    startedAtMs: invocation.startedAtMs, durationMs: invocation.durationMs,
  }, ...inner];
}

const isFailure = (status) => typeof status === "number" && status >= 400;

function waterfallRow({ kind, depth, label, note, startedAtMs, durationMs, initMs = 0 }, start, length) {
  const bar = (className, ms) => {
    const node = element("span", { class: className });
    // Properties of the style object, unlike a style attribute, are allowed by the content security policy.
    node.style.setProperty("--from", `${(100 * (startedAtMs - start)) / length}%`);
    node.style.setProperty("--width", `${(100 * ms) / length}%`);
    return node;
  };
  const name = element("span", { class: "row-label" }, label, note && element("span", { class: "note" }, note));
  name.style.setProperty("--depth", depth);
  const bars = [bar("bar", durationMs ?? 0), initMs > 0 && bar("bar init", Math.min(initMs, durationMs ?? initMs))];
  const time = element("span", { class: "row-time" }, duration(durationMs));
  return element("li", { class: kind }, name, element("span", { class: "track" }, bars), time);
}

function describeError(error) {
  if (error === null || error === undefined) return "the invocation failed";
  return typeof error === "string" ? error : [error.errorType, error.errorMessage].filter(Boolean).join(": ");
}
