// A form for the schema of an elicitation (2026-07-28, client/elicitation): one labelled field for each property. The
// question app has this module inlined, and the console imports it. Texts of schemas are set as text, never as markup.

const FEW = 5; // choices that are radio buttons; more are a list
const MANY = 20; // choices that get a filter
const EXAMPLES = { email: "name@example.com", uri: "https://example.com" };
const FORMATS = {
  email: [/^[^\s@]+@[^\s@]+$/, "an e-mail address"],
  uri: [/^[a-z][a-z0-9+.-]*:\S+$/i, "a URI such as https://example.com"],
};

let lastId = 0;

/** Return an id that no other element has. */
export const uniqueId = (prefix = "id") => `${prefix}-${++lastId}`;

/**
 * Create an element. Functions become listeners (`onclick`), `dataset` is an object; null, undefined and false leave an
 * attribute out, and true sets it without a value.
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** Return an address as a browser opens it, in ASCII: other spellings can show another host. Null if it is not of the web. */
export function webAddress(url) {
  try {
    const { protocol, href } = new URL(url);
    return /^https?:$/.test(protocol) ? href : null;
  } catch {
    return null;
  }
}

/**
 * Return the form of an object schema.
 * @param {{message?: string, values?: Object, labelOf?: Function, controlOf?: Function}} options
 *     `message` labels a field without a title of its own that is the only one. `values` replace the defaults. `labelOf`
 *     returns the label of a field and a note beside it. `controlOf` returns a control (see `makeInput`) for a schema of
 *     other forms than elicitations have; undefined leaves the schema to this module.
 * @returns {{node: Element, hasMessage: boolean, focus: Function, read: Function, values: Function}}
 *     `read` returns the content, or null after it has marked what is wrong, to which `focus` then goes. `values` returns
 *     what is valid.
 */
export function makeForm(schema, { message, values = {}, labelOf = labelOfAnswer, controlOf = () => undefined } = {}) {
  const properties = Object.entries(schema.properties ?? {});
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const [name, only] = properties[0] ?? [];
  const hasMessage = message !== undefined && properties.length === 1 && name === "value" && !only.title;
  const fields = new Map();
  for (const [each, property] of properties) {
    const [label, note] = labelOf(each, property, required.has(each));
    const value = values[each] ?? property.default ?? undefined;
    const control = controlOf(property, { name: each, value }) ?? controlFor(property, value, required.has(each));
    const texts = hasMessage ? [message, required.has(each) ? "" : "(optional)"] : [label, note];
    fields.set(each, makeField(property, texts, required.has(each), control));
  }
  let invalid = null;
  const check = () => [...fields].map(([each, field]) => ({ each, field, ...field.read() }));
  const contentOf = (found) => {
    const valid = found.filter(({ value, problem }) => !problem && value !== undefined);
    return Object.fromEntries(valid.map(({ each, value }) => [each, value]));
  };
  return {
    hasMessage,
    node: element("div", { class: "fields" }, ...[...fields.values()].map((field) => field.node)),
    focus: () => (invalid ?? [...fields.values()][0])?.focus(),
    values: () => contentOf(check()),
    read() {
      const found = check();
      for (const { field, problem } of found) field.complain(problem ?? "");
      invalid = found.find(({ problem }) => problem)?.field ?? null;
      return invalid === null ? contentOf(found) : null;
    },
  };
}

const labelOfAnswer = (name, { title }, isRequired) => [title || titleOf(name), isRequired ? "" : "(optional)"];

/** The title of a property that has none: "Size Gb" for size_gb and sizeGb. Other names stay. */
export function titleOf(name) {
  if (!/^\w+$/.test(name)) return name;
  const words = name.replaceAll("_", " ").replace(/([a-z\d])(?=[A-Z])/g, "$1 ").trim();
  return words.replace(/(^|\s)\S/g, (first) => first.toUpperCase()) || name;
}

function makeField(schema, [label, note], isRequired, control) {
  const text = (kind, content, tag = "p") => element(tag, { class: kind, id: uniqueId(), dir: "auto" }, content);
  const caption = text("label-name", label, control.isGroup ? "span" : "label");
  const notes = [
    text("label-note", note, "span"),
    text("hint", [schema.description, isolated(limitsOf(schema))].filter(Boolean).join(" · ")),
    text("error", ""),
  ];
  const [beside, hint, error] = notes;
  const row = element("div", { class: "label-row" }, caption, beside);
  const node = element("div", { class: "field" }, row, hint, control.node, error);
  const named = control.isGroup ? node : control.input;
  if (control.isGroup) {
    node.setAttribute("role", "group");
    node.setAttribute("aria-labelledby", caption.id);
  } else {
    caption.htmlFor = control.input.id ||= uniqueId();
    if (isRequired) named.setAttribute("aria-required", "true");
  }
  const described = notes.filter((each) => each === error || each.textContent !== "");
  named.setAttribute("aria-describedby", described.map((each) => each.id).join(" "));
  return {
    node,
    focus: () => ((control.isGroup && control.node.querySelector(":checked")) || control.input).focus(),
    complain(problem) {
      error.textContent = problem;
      named.setAttribute("aria-invalid", String(problem !== ""));
    },
    read() {
      const { value, problem } = control.read();
      if (problem) return { problem };
      if (value !== undefined) return { value, problem: problemOf(schema, value) };
      return isRequired ? { problem: control.isGroup ? "Choose an option." : "Enter a value." } : {};
    },
  };
}

// -- what a schema says -------------------------------------------------------------------------------------------------

/** Return the choices of a schema, which are those of the items of an array; null if it has none. */
export function choicesOf({ type, enum: values, enumNames, oneOf, anyOf, items, ...others }) {
  if (type === "array") return ["array", "boolean"].includes(items?.type) ? null : choicesOf(items ?? {});
  if (type === "boolean") return [{ value: true, label: "Yes" }, { value: false, label: "No" }];
  const branches = oneOf ?? anyOf ?? ("const" in others ? [others] : []);
  if (branches.length > 0 && branches.every((branch) => "const" in branch))
    return branches.map((branch) => ({ value: branch.const, label: String(branch.title ?? branch.const) }));
  if (!Array.isArray(values)) return null;
  return values.map((value, index) => ({ value, label: String(enumNames?.[index] ?? value) }));
}

/** Keep the direction of a text beside one of another direction: "1 to 10" behind Arabic would become "to 10 1". */
const isolated = (text) => text && `\u2068${text}\u2069`;

const isNumeric = ({ type }) => type === "integer" || type === "number";

/** Return the limits of a schema in words, such as "1 to 16" or "at most 500 characters"; empty if it has none. */
function limitsOf(schema) {
  const between = (least, most, unit) => {
    if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
    if (most !== undefined) return `at most ${most}${unit}`;
    return least === undefined ? "" : `at least ${least}${unit}`;
  };
  if (schema.type === "array") {
    return between(schema.minItems || undefined, schema.maxItems, choicesOf(schema) ? " choices" : " items");
  }
  if (isNumeric(schema)) {
    const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
    const open = [above !== undefined && `more than ${above}`, below !== undefined && `less than ${below}`];
    return [between(schema.minimum, schema.maximum, ""), ...open].filter(Boolean).join(", ");
  }
  if (schema.format === "date-time") return `in your time zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  const length = between(schema.minLength > 1 ? schema.minLength : undefined, schema.maxLength, " characters");
  return [length, schema.pattern && `matches ${schema.pattern}`].filter(Boolean).join(" · ");
}

/** Return why a value does not fit its schema; undefined if it does. The server checks the same, and more. */
export function problemOf(schema, value) {
  if (typeof value === "number") {
    if (value < schema.minimum) return `Enter at least ${schema.minimum}.`;
    if (value > schema.maximum) return `Enter at most ${schema.maximum}.`;
    if (value <= schema.exclusiveMinimum) return `Enter more than ${schema.exclusiveMinimum}.`;
    if (value >= schema.exclusiveMaximum) return `Enter less than ${schema.exclusiveMaximum}.`;
  } else if (typeof value === "string") {
    const length = [...value].length; // code points, as JSON Schema counts
    if (length < schema.minLength) return `Enter at least ${schema.minLength} characters.`;
    if (length > schema.maxLength) return `Enter at most ${schema.maxLength} characters. These are ${length}.`;
    if (schema.pattern && !matches(schema.pattern, value)) return `Enter a text that matches ${schema.pattern}`;
    const [format, name] = FORMATS[schema.format] ?? [];
    if (format && !format.test(value)) return `Enter ${name}.`;
  } else if (Array.isArray(value)) {
    if (value.length < schema.minItems) return `Choose at least ${schema.minItems}.`;
    if (value.length > schema.maxItems) return `Choose at most ${schema.maxItems}.`;
  }
}

function matches(pattern, value) {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // a pattern of another dialect: the server decides
  }
}

// -- controls -----------------------------------------------------------------------------------------------------------

function controlFor(schema, value, isRequired) {
  const choices = choicesOf(schema);
  if (schema.type === "array") return makeCheckboxes(schema, choices ?? [], value, isRequired);
  if (choices === null) return makeInput(schema, value);
  return choices.length <= FEW ? makeRadios(choices, value, isRequired) : makeSelect(choices, value, isRequired);
}

/**
 * Return the control of a text, a number or a time: its node, the input that a label names, and `read`, which returns a
 * value, which is undefined if it was left out, or a problem.
 */
export function makeInput(schema, given) {
  const { type, format, maxLength, examples } = schema;
  const times = { date: "date", "date-time": "datetime-local" };
  const isLong = !format && !isNumeric(schema) && maxLength > 200;
  const input = element(isLong ? "textarea" : "input", {
    // Not type=email or number: browsers change the one's value, and hide what was typed into the other.
    class: "input", dir: "auto", autocomplete: "off", type: isLong ? null : times[format] ?? "text",
    inputmode: isNumeric(schema) ? numberMode(type, given) : { email: "email", uri: "url" }[format],
    placeholder: examples?.[0] ?? EXAMPLES[format],
  });
  if (given !== undefined) input.value = format === "date-time" ? toLocalTime(given, input) : String(given);
  const read = () => {
    if (input.validity.badInput) return { problem: "Enter a complete date." };
    const typed = isNumeric(schema) ? input.value.trim() : input.value;
    if (typed === "") return {};
    if (isNumeric(schema)) return readNumber(type, typed);
    return { value: format === "date-time" ? new Date(typed).toISOString() : typed };
  };
  return { node: input, input, read };
}

/** The number pad of some phones has no minus sign. */
const numberMode = (type, given) => (type === "integer" && !(given < 0) ? "numeric" : "decimal");

/** Return the number that a text is, or the problem with it. */
export function readNumber(type, typed) {
  const value = Number(typed);
  if (type === "integer" && !/^[+-]?\d+$/.test(typed)) return { problem: "Enter a whole number." };
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(typed)) return { problem: "Enter a number, such as 1.5." };
  const isExact = type === "integer" ? Number.isSafeInteger(value) : Number.isFinite(value);
  return isExact ? { value } : { problem: "This number is too large for a form." };
}

function toLocalTime(given, node) {
  const time = new Date(given);
  if (Number.isNaN(time.valueOf())) return "";
  if (time.getSeconds()) node.step = 1;
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, node.step === "1" ? 19 : 16);
}

/** Return a checkbox or a radio button with its label. */
export function makeChoice(label, { type = "checkbox", ...attributes } = {}) {
  const input = element("input", { type, ...attributes });
  return { input, node: element("label", { class: "choice" }, input, element("span", { dir: "auto" }, label)) };
}

function makeRadios(choices, given, isRequired) {
  const options = isRequired ? choices : [...choices, { value: undefined, label: "No answer" }];
  const name = uniqueId("choice");
  const boxes = options.map(({ value, label }) => makeChoice(label, { type: "radio", name, checked: value === given }));
  return {
    isGroup: true, input: boxes[0].input,
    node: element("div", { class: "choices" }, ...boxes.map((box) => box.node)),
    read: () => ({ value: options[boxes.findIndex((box) => box.input.checked)]?.value }),
  };
}

function makeSelect(choices, given, isRequired) {
  const none = element("option", {}, isRequired ? "Choose…" : "No answer");
  const options = choices.map(({ label }) => element("option", {}, label));
  const input = element("select", { class: "input" }, none, ...options);
  input.selectedIndex = choices.findIndex((choice) => choice.value === given) + 1;
  return { node: input, input, read: () => ({ value: choices[input.selectedIndex - 1]?.value }) };
}

function makeCheckboxes({ minItems }, choices, given, isRequired) {
  const boxes = choices.map(({ value, label }) => makeChoice(label, { checked: given?.includes(value) }));
  const list = element("div", { class: "choices" }, ...boxes.map((box) => box.node));
  const filter = element("input", {
    type: "search", class: "input", "aria-label": "Show choices that contain", placeholder: "Filter",
    oninput: () => {
      const wanted = filter.value.toLowerCase();
      boxes.forEach((box, index) => { box.node.hidden = !choices[index].label.toLowerCase().includes(wanted); });
    },
  });
  return {
    isGroup: true, input: boxes[0]?.input ?? filter,
    node: choices.length > MANY ? element("div", {}, filter, list) : list,
    read() {
      const chosen = choices.filter((_, index) => boxes[index].input.checked).map((choice) => choice.value);
      // No choice at all is an answer to a field that is required, or whose default was removed.
      const isAnswer = chosen.length > 0 || ((isRequired || given?.length > 0) && !(minItems > 0));
      return { value: isAnswer ? chosen : undefined };
    },
  };
}
