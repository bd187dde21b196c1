// What a round reported: progress and log notifications of the response, and what the functions logged and printed.

import { h } from "../dom.js";
import { logLinesOf } from "../exchange.js";
import { parseJson } from "../format.js";

/** Return the log of a round. The package's records of normal requests are left out. */
export function logOf(round) {
  const notified = (round.response?.notifications ?? []).map(describeNotification);
  const logged = logLinesOf(round.exchange).map((line) => readLogLine(line.text)).filter((line) => !line.isRoutine);
  const lines = [...notified, ...logged].map(({ level, text }) => [level, text]);
  return lines.length > 0 && logView(lines, `Log of round ${round.number}`);
}

/** Return a log: where each line is from, or its level, and its text. */
export function logView(lines, label) {
  return h("div.logs", { tabindex: 0, role: "region", "aria-label": label }, lines.map(([kind, text]) =>
    h("p", { class: `log-${kind}` }, h("span.log-kind", kind), h("span", { dir: "auto" }, text))));
}

function describeNotification({ method, params = {} }) {
  const kind = method.replace("notifications/", "");
  if (kind === "progress") {
    const of = params.total === undefined ? "" : ` of ${params.total}`;
    return { level: kind, text: [`${params.progress}${of}`, params.message].filter(Boolean).join(" · ") };
  }
  const data = kind === "message" ? params.data : params;
  return { level: params.level ?? kind, text: typeof data === "string" ? data : JSON.stringify(data) };
}

// -- log lines as a person reads them: JSON objects become a sentence, tracebacks get their lines back ---------------------

const OWN_EVENT = /^[a-z]+(_[a-z]+)+$/;
const ROUTINE_LEVELS = new Set(["DEBUG", "INFO"]);
const NOT_SHOWN = new Set([
  "level", "message", "timestamp", "service", "location", "correlation_id", "xray_trace_id", "_aws", "flow",
  "exception", "exception_name", "stack_trace", "cold_start", "sampling_rate",
  "function_name", "function_memory_size", "function_arn", "function_request_id",
]);

/** Return a log line to show. `isRoutine`: it is the record of the package for a normal request. */
function readLogLine(text) {
  const record = text.startsWith("{") ? parseJson(text) : null;
  if (record?._aws !== undefined && record.message === undefined) return { level: "metric", text, isRoutine: true };
  if (typeof record?.level !== "string" || !("message" in record)) return { level: "print", text, isRoutine: false };
  const { level, message } = record;
  const isOwn = OWN_EVENT.test(message) && "correlation_id" in record;
  return { level: level.toLowerCase(), text: describe(record), isRoutine: isOwn && ROUTINE_LEVELS.has(level) };
}

function describe(record) {
  const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const details = Object.entries(record).filter(([name]) => !NOT_SHOWN.has(name));
  const line = [textOf(record.message), ...details.map(([name, value]) => `${name}=${textOf(value)}`)].join("  ");
  const trace = record.exception ?? record.stack_trace;
  return trace ? `${line}\n${typeof trace === "string" ? trace : JSON.stringify(trace, null, 2)}` : line;
}
