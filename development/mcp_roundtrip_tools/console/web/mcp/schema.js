// Reads JSON Schema as far as a form needs it: which control a member gets, its options, and what is wrong
// with a value. The server has the last word on every value.

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** Return a schema without `$ref` and without the null branch of an optional value. */
export function resolve(schema, root) {
  let found = isObject(schema) ? schema : {}; // `true` is a schema, too
  for (let depth = 0; depth < 20; depth++) {
    const reference = found.$ref;
    if (typeof reference === "string" && reference.startsWith("#/")) {
      const { $ref, ...beside } = found;
      found = { ...target(root, reference), ...beside }; // a reference to itself ends with the depth
      continue;
    }
    const branches = (found.anyOf ?? []).filter((branch) => branch?.type !== "null");
    if (branches.length === 1 && found.anyOf.length > 1) {
      const { anyOf, ...beside } = found;
      found = { ...branches[0], ...beside, nullable: true };
      continue;
    }
    break;
  }
  return found;
}

function target(root, reference) {
  let node = root;
  for (const part of reference.slice(2).split("/")) {
    node = node?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return node ?? {};
}

/**
 * Return the options of an enumeration, or null if it is none. Titles come from `oneOf`, `anyOf` or `enumNames`.
 * @returns {{value: any, title: string}[]|null}
 */
export function optionsOf(schema) {
  const branches = schema.oneOf ?? schema.anyOf;
  if (branches?.length && branches.every((branch) => "const" in branch)) {
    return branches.map((branch) => ({ value: branch.const, title: String(branch.title ?? branch.const) }));
  }
  if ("const" in schema) return [{ value: schema.const, title: String(schema.const) }];
  if (!Array.isArray(schema.enum)) return null;
  return schema.enum.map((value, index) => ({ value, title: String(schema.enumNames?.[index] ?? value) }));
}

/** Return the control for a schema: "choice", "choices", "boolean", "integer", "number", "text", "list" or "json". */
export function kindOf(schema, root) {
  if (optionsOf(schema)) return "choice";
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type;
  if (type === "array") {
    const items = resolve(schema.items, root);
    if (schema.prefixItems) return "json";
    if (optionsOf(items)) return "choices";
    return ["string", "integer", "number"].includes(items.type) ? "list" : "json";
  }
  if (type === "string") return "text";
  return ["boolean", "integer", "number"].includes(type) ? type : "json";
}

/** Return a value of the schema's shape, to show what is expected. */
export function exampleOf(schema, root, depth = 0) {
  const found = resolve(schema, root);
  if ("default" in found) return found.default;
  const options = optionsOf(found);
  if (options) return options[0].value;
  const type = Array.isArray(found.type) ? found.type[0] : found.type;
  if (type === "array") return depth > 3 || !found.items ? [] : [exampleOf(found.items, root, depth + 1)];
  if (type !== "object") return { string: "…", integer: 1, number: 1.5, boolean: true }[type] ?? null;
  const members = depth > 3 ? [] : Object.entries(found.properties ?? {});
  return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(member, root, depth + 1)]));
}

/** Return the number that a text is, or null. */
export function parseNumber(text) {
  const trimmed = text.trim();
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : null;
}

/** Return what is wrong with a value, as a sentence, or null. Checks the keywords that forms use. */
export function problemOf(value, schema, root) {
  const found = resolve(schema, root);
  const kind = kindOf(found, root);
  if (kind === "integer" && !Number.isInteger(value)) return "Enter a whole number.";
  if (kind === "integer" || kind === "number") return numberProblem(value, found);
  if (kind === "text") return textProblem(value, found);
  if (Array.isArray(value)) return listProblem(value, found, root);
  return null;
}

function numberProblem(value, schema) {
  if (value < schema.minimum) return `Enter ${schema.minimum} or more.`;
  if (value > schema.maximum) return `Enter ${schema.maximum} or less.`;
  if (value <= schema.exclusiveMinimum) return `Enter more than ${schema.exclusiveMinimum}.`;
  if (value >= schema.exclusiveMaximum) return `Enter less than ${schema.exclusiveMaximum}.`;
  if (schema.multipleOf && !Number.isInteger(value / schema.multipleOf)) return `Enter a multiple of ${schema.multipleOf}.`;
  return null;
}

const FORMATS = {
  email: [/^[^\s@]+@[^\s@]+$/, "an e-mail address"],
  uri: [/^[a-z][a-z0-9+.-]*:\S+$/i, "a URI such as https://example.com"],
  date: [/^\d{4}-\d{2}-\d{2}$/, "a date such as 2026-07-28"],
  "date-time": [/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/, "a date and time such as 2026-07-28T14:00:00Z"],
};

function textProblem(value, schema) {
  const length = [...value].length;
  if (length < schema.minLength) return `Enter at least ${schema.minLength} characters.`;
  if (length > schema.maxLength) return `Enter at most ${schema.maxLength} characters; these are ${length}.`;
  if (schema.pattern && !matches(schema.pattern, value)) return `Enter a text that matches ${schema.pattern}`;
  const [format, name] = FORMATS[schema.format] ?? [];
  if (format && !format.test(value)) return `Enter ${name}.`;
  return null;
}

function matches(pattern, value) {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // a pattern of another dialect: the server decides
  }
}

function listProblem(value, schema, root) {
  if (value.length < schema.minItems) return `At least ${schema.minItems} are needed.`;
  if (value.length > schema.maxItems) return `At most ${schema.maxItems} are possible.`;
  for (const [index, item] of value.entries()) {
    const problem = schema.items && problemOf(item, schema.items, root);
    if (problem) return `Item ${index + 1}: ${problem}`;
  }
  return null;
}

/** Return the constraints of a schema in words, such as "1 to 16" or "at most 500 characters"; empty if it has none. */
export function describeConstraints(schema) {
  const range = (low, high, unit) => {
    if (low !== undefined && high !== undefined) return `${low} to ${high}${unit}`;
    if (low !== undefined && low !== 0) return `at least ${low}${unit}`;
    return high === undefined ? "" : `at most ${high}${unit}`;
  };
  const parts = [
    range(schema.minimum, schema.maximum, ""),
    range(schema.minLength, schema.maxLength, " characters"),
    range(schema.minItems, schema.maxItems, " items"),
    schema.pattern ? `matches ${schema.pattern}` : "",
    schema.format ?? "",
  ];
  return parts.filter(Boolean).join(" · ");
}
