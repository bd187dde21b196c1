// Numbers, times and sizes as short texts.

/** 0.4 ms, 12 ms, 1.24 s, 2 min 5 s. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** 812 B, 1.2 KB, 60 KB, 4.1 MB (of 1,000 bytes, as AWS quotas count messages). */
export function bytes(count) {
  if (count === null || count === undefined) return "";
  if (count < 1000) return `${count} B`;
  const [value, unit] = count < 999_500 ? [count / 1000, "KB"] : [count / 1_000_000, "MB"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** 14:03:07 in the user's time zone. */
export const clockTime = (ms) => new Date(ms).toLocaleTimeString("en-GB");

/** "1 call", "2 calls". */
export const count = (number, noun) => `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;

/** A value in one line of JSON, cut after 120 characters. */
export function shortJson(value) {
  const text = JSON.stringify(value) ?? "";
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

export const sameJson = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Return the value of a JSON text, or `otherwise`. */
export function parseJson(text, otherwise = null) {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}
