// Writes JSON values as Python source text, with lines of at most 100 characters where that is possible.

import { escapeUnsafe } from "./unsafe.js";

const WIDTH = 100;

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import " +
    "in is lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

/**
 * A piece of source text that `literal` writes as it is, such as the name of a constant.
 */
export class Source {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/**
 * Return a value as a Python expression that starts `column` characters into its line.
 * @param {*} value a JSON value, which may contain `Source`
 * @param {number} indent the indentation of the line in which the expression starts
 * @param {number} column
 */
export function literal(value, indent = 0, column = indent) {
  const line = oneLine(value);
  const isNested = typeof value === "object" && value !== null && !(value instanceof Source);
  if (!isNested || column + line.length <= WIDTH || line.length <= 2) return line;
  const inner = indent + 4;
  const pad = " ".repeat(inner);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const rows = Array.isArray(value)
    ? value.map((each) => pad + literal(each, inner))
    : Object.entries(value).map(([name, each]) => {
        const label = `${pad}${text(name)}: `;
        return label + literal(each, inner, label.length);
      });
  return `${open}\n${rows.map((row) => `${row},\n`).join("")}${" ".repeat(indent)}${close}`;
}

function oneLine(value) {
  if (value instanceof Source) return value.text;
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value)
      .map(([name, each]) => `${text(name)}: ${oneLine(each)}`)
      .join(", ")}}`;
  }
  return String(value);
}

/** Return a string literal, with the quotes that need fewer escapes. JSON's escapes are Python's, too. */
export function text(value) {
  const quoted = escapeUnsafe(JSON.stringify(value));
  const count = (quote) => value.split(quote).length - 1;
  if (count('"') <= count("'")) return quoted;
  return `'${quoted.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** Return a text that is safe inside a comment or a docstring: one line, without quotes that end it. */
export function remark(value) {
  return escapeUnsafe(value.replace(/[\s\u0000-\u001f]+/g, " ").replace(/["\\]/g, "'"));
}

/**
 * Return keyword arguments: `size=4, keep=True`, and `**{"city 1/place": …}` for names that Python does not allow.
 * @param {Array<[string, *]>} pairs
 */
export function keywords(pairs) {
  const allowed = pairs.filter(([name]) => isName(name));
  const others = pairs.filter(([name]) => !isName(name));
  const parts = allowed.map(([name, value]) => `${name}=${oneLine(value)}`);
  if (others.length > 0) parts.push(`**${oneLine(Object.fromEntries(others))}`);
  return parts;
}

function isName(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !KEYWORDS.has(name);
}

/**
 * Return a call of a function, on one line or with one argument in each line.
 * @param {string} start the text before the parenthesis, such as `done = play.call`
 * @param {string[]} parts the arguments
 */
export function invocation(start, parts, indent = 0) {
  const line = `${" ".repeat(indent)}${start}(${parts.join(", ")})`;
  if (line.length <= WIDTH && !line.includes("\n")) return line;
  const pad = " ".repeat(indent + 4);
  return `${" ".repeat(indent)}${start}(\n${parts.map((part) => `${pad}${part},\n`).join("")}${" ".repeat(indent)})`;
}

/** Return a name for a function or a file: lower-case letters, digits and underscores. */
export function identifier(value) {
  const name = value
    .replace(/[^A-Za-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .toLowerCase();
  return /^[a-z]/.test(name) ? name : `call_${name}`;
}
