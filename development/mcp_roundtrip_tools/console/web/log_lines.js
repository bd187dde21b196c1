// Log lines of functions as a person reads them: JSON objects become a sentence, tracebacks get their lines back.

import { parseJson } from "./format.js";

const OWN_EVENT = /^[a-z]+(_[a-z]+)+$/;
const ROUTINE_LEVELS = new Set(["DEBUG", "INFO"]);
const NOT_SHOWN = new Set([
  "level", "message", "timestamp", "service", "location", "correlation_id", "xray_trace_id", "_aws", "flow",
  "exception", "exception_name", "stack_trace", "cold_start", "sampling_rate",
  "function_name", "function_memory_size", "function_arn", "function_request_id",
]);

/**
 * Return a log line to show.
 * @returns {{level: string, text: string, isRoutine: boolean, event?: string}} `event`: the name of the package's own record;
 *     `isRoutine`: it is that of a normal request
 */
export function readLogLine(text) {
  const record = text.startsWith("{") ? parseJson(text) : null;
  if (record?._aws !== undefined && record.message === undefined) return { level: "metric", text, isRoutine: true };
  if (typeof record?.level !== "string" || !("message" in record)) return { level: "print", text, isRoutine: false };
  const { level, message } = record;
  const isOwn = OWN_EVENT.test(message) && "correlation_id" in record;
  const shown = { level: level.toLowerCase(), text: describe(record), isRoutine: isOwn && ROUTINE_LEVELS.has(level) };
  return isOwn ? { ...shown, event: message } : shown;
}

function describe(record) {
  const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const details = Object.entries(record).filter(([name]) => !NOT_SHOWN.has(name));
  const line = [textOf(record.message), ...details.map(([name, value]) => `${name}=${textOf(value)}`)].join("  ");
  const trace = record.exception ?? record.stack_trace;
  return trace ? `${line}\n${typeof trace === "string" ? trace : JSON.stringify(trace, null, 2)}` : line;
}
