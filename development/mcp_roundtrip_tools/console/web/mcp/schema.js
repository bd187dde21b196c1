// Reads the JSON Schema of a tool's arguments: as the fields of a form, and as examples.

import { choicesOf, problemOf } from "../form.js";

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** Return an object schema whose properties have neither `$ref` nor the null branch of an optional value. */
export function plainSchema(schema) {
  const plain = ([name, property]) => [name, resolve(property, schema)];
  return { ...schema, properties: Object.fromEntries(Object.entries(schema.properties ?? {}).map(plain)) };
}

function resolve(schema, root) {
  let found = isObject(schema) ? schema : {}; // `true` is a schema, too
  for (let depth = 0; depth < 20; depth++) {
    const { $ref, anyOf, ...beside } = found;
    const branches = (anyOf ?? []).filter((branch) => branch?.type !== "null");
    if (typeof $ref === "string") found = { ...target(root, $ref), ...(anyOf && { anyOf }), ...beside };
    else if (branches.length === 1 && anyOf.length > 1) found = { ...branches[0], ...beside };
    else break; // a reference to itself ends with the depth
  }
  if (Array.isArray(found.type)) found = { ...found, type: found.type.find((each) => each !== "null") };
  return found.items === undefined ? found : { ...found, items: isObject(found.items) ? resolve(found.items, root) : {} };
}

function target(root, reference) {
  let node = root;
  for (const part of reference.split("/").slice(1))
    node = node?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  return isObject(node) ? node : {};
}

/** Return how a plain schema is shown: "list" or "json" if not as in a question, which is "answer". */
export function kindOf(schema) {
  if (choicesOf(schema)) return "answer";
  if (schema.type === "array") {
    return !schema.prefixItems && ["string", "integer", "number"].includes(schema.items?.type) ? "list" : "json";
  }
  return ["string", "integer", "number"].includes(schema.type) ? "answer" : "json";
}

const SUCH_AS = /\b(?:such as|for example|e\.g\.) (?:["“'`]([^"”'`]+)["”'`]|([^\s,;()]+))/;
const TEXTS = {
  email: "ada@example.com", uri: "https://example.com", date: "2026-07-28", "date-time": "2026-07-28T14:00:00Z",
};

/** Return a value for a plain schema: from its examples, default, choices or description, or of its type. */
export function exampleOf(schema, depth = 0) {
  const { type, examples, description = "", format, items, minimum, properties = {} } = schema;
  if (examples?.length > 0) return examples[0];
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  const choices = choicesOf(schema);
  if (choices) return type === "array" ? [choices[0].value] : choices[0].value;
  const [, quoted, word] = SUCH_AS.exec(description) ?? [];
  const text = quoted ?? word?.replace(/[.:]$/, "");
  if (type === "string") return [text, TEXTS[format], "example"].find((each) => each && !problemOf(schema, each)) ?? "";
  if (type === "integer" || type === "number") return minimum ?? 1;
  if (type === "array") return depth > 3 || !items ? [] : Array(schema.minItems || 1).fill(exampleOf(items, depth + 1));
  const members = depth > 3 ? [] : Object.entries(properties);
  return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(member, depth + 1)]));
}

/** Return arguments with which a tool can be tried: those that it requires. */
export function exampleArguments(tool) {
  const { properties, required = [] } = plainSchema(tool.inputSchema ?? {});
  const needed = Object.entries(properties).filter(([name]) => required.includes(name));
  return Object.fromEntries(needed.map(([name, schema]) => [name, exampleOf(schema)]));
}
