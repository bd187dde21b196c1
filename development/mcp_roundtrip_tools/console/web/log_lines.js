// Log lines of functions as a person reads them: JSON objects become a sentence, tracebacks get their lines back.

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
  const record = parse(text);
  if (record?._aws !== undefined && record.message === undefined) return { level: "metric", text, isRoutine: true };
  if (record === null) return { level: "print", text, isRoutine: false };
  const { level, message } = record;
  const isOwn = OWN_EVENT.test(message) && "correlation_id" in record;
  return { level: level.toLowerCase(), text: describe(record), isRoutine: isOwn && ROUTINE_LEVELS.has(level), ...(isOwn && { event: message }) };
}

function parse(text) {
  if (!text.startsWith("{")) return null;
  try {
    const record = JSON.parse(text);
    const isLogged = typeof record.level === "string" && "message" in record;
    return isLogged || record._aws !== undefined ? record : null;
  } catch {
    return null;
  }
}

function describe(record) {
  const message = typeof record.message === "string" ? record.message : JSON.stringify(record.message);
  const details = Object.entries(record)
    .filter(([name]) => !NOT_SHOWN.has(name))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const trace = record.exception ?? record.stack_trace;
  return [[message, ...details].join("  "), typeof trace === "string" ? trace : trace && JSON.stringify(trace, null, 2)]
    .filter(Boolean).join("\n");
}
