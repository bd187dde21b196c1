// Writes JSON values as Python source text.

/** Characters that a terminal interprets, or that are invisible or reorder the text around them. */
const UNSAFE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield").split(" "),
);

/** Return a JSON text with such characters, and `more`, as escapes, which JSON and Python read alike. */
export function escapeUnsafe(text, more = "") {
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const escaped = text.replace(UNSAFE, escape);
  return more === "" ? escaped : escaped.replaceAll(more, escape);
}

/** A piece of source text that `literal` writes as it is, such as the name of a constant. */
export class Source extends String {}

/** Return a JSON value, which may contain `Source`, as a Python expression on one line. */
export function literal(value) {
  if (value instanceof Source) return `${value}`;
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return String(value);
  return `{${Object.entries(value).map(([name, each]) => `${text(name)}: ${literal(each)}`).join(", ")}}`;
}

/** Return a string literal. JSON's escapes are Python's, too. */
export const text = (value) => escapeUnsafe(JSON.stringify(value));

/** Return a text that is safe inside a comment or a docstring: one line, without quotes that end it. */
export function remark(value) {
  return escapeUnsafe(value.replace(/[\s\u0000-\u001f]+/g, " ").replace(/["\\]/g, "'"));
}

/** Return keyword arguments: `size=4, keep=True`, and `**{"city 1/place": …}` for names that Python does not allow. */
export function keywords(values) {
  const isName = (name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !KEYWORDS.has(name);
  const others = Object.entries(values).filter(([name]) => !isName(name));
  const parts = Object.entries(values).filter(([name]) => isName(name)).map(([name, value]) => `${name}=${literal(value)}`);
  return others.length > 0 ? [...parts, `**${literal(Object.fromEntries(others))}`] : parts;
}
