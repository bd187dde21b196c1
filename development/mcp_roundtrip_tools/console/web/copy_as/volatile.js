// Finds the parts of a result that differ in the next run: ids, times and addresses. A test must not compare them.

const VOLATILE = new RegExp(
  [
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", // a UUID
    "\\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{10,}\\b", // hexadecimal digits, such as a digest
    "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d", // a time
    "127\\.0\\.0\\.1:\\d+", // an address of this run
    "\\b[\\w-]{32,}\\b", // a token, or the code of a call
  ].join("|"),
);

/** Whether a text contains such a part. */
export function isVolatile(text) {
  return VOLATILE.test(text);
}

/** Return the longest part of a text without such parts, trimmed to whole words. */
export function stablePart(text) {
  const words = text.split(/(\s+)/);
  let best = "";
  let current = "";
  for (const word of words) {
    current = isVolatile(word) ? "" : current + word;
    if (current.trim().length > best.length) best = current.trim();
  }
  return best;
}

/**
 * Return a copy of a JSON value in which `replacement` takes the place of each text with such parts.
 * @param {*} value
 * @param {*} replacement
 */
export function withoutVolatile(value, replacement) {
  if (typeof value === "string") return isVolatile(value) ? replacement : value;
  if (Array.isArray(value)) return value.map((each) => withoutVolatile(each, replacement));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutVolatile(each, replacement)]));
  }
  return value;
}
