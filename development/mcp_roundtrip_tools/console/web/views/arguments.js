// The form for the arguments of a tool, a prompt or a template: the fields of a question, and lists, other values as JSON,
// and suggestions while typing. It can be switched to JSON as a whole.

import { button, fill, h, textField, uniqueId } from "../dom.js";
import { choicesOf, makeForm, makeInput, readNumber } from "../form.js";
import { exampleOf, kindOf, plainSchema } from "../mcp/schema.js";

const SUGGEST_AFTER_MS = 120;

/** The label of a field of the console: its name, and its type. */
export function labelOf(name, { title, type, items }, isRequired) {
  const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const isDerived = !title || letters(title) === letters(name); // pydantic derives titles from names: the name says more
  const kind = type === "array" && items?.type ? `list of ${items.type}s` : type === "boolean" ? "yes or no" : type ?? "any";
  return [isDerived ? name : title, isRequired ? `${kind} · required` : kind];
}

/**
 * @typedef {(text: string, others: Object) => Promise<string[]>} Complete  suggests values; `others`: those of other fields
 * @param {{values?: Object, completions?: Record<string, Complete>}} options
 * @returns {{node, toggle, read, focus, values}}  `toggle` is the button that switches to JSON. The others are those of
 *     `makeForm`; with JSON, anything can be sent, also what is invalid
 */
export function argumentsEditor(schema, { values = {}, completions = {} } = {}) {
  const control = (property, { name, value }) => controlOf(property, value, completions[name], () => editor.values());
  const fieldsOf = (current) => makeForm(plainSchema(schema), { values: current, labelOf, controlOf: control });
  let editor = fieldsOf(values);
  let isJson = false;
  const place = h("div", editor.node);
  const toggle = button("Edit as JSON", flip, { class: "quiet", "aria-pressed": "false" });

  function flip() {
    const current = editor.values();
    isJson = !isJson;
    editor = isJson ? jsonEditor("Arguments", JSON.stringify(current, null, 2), current) : fieldsOf(current);
    toggle.setAttribute("aria-pressed", String(isJson));
    fill(place, editor.node);
    editor.focus();
  }

  return {
    node: place, toggle,
    focus: () => editor.focus(), read: () => editor.read(), values: () => editor.values(),
  };
}

/** Return an editor of a JSON text, which stands for `{}` if it is empty. It has the functions of `makeForm`. */
export function jsonEditor(label, given, values = {}) {
  const { input, read } = jsonControl({ type: "any" }, given);
  const error = h("p.error", { id: uniqueId("error") });
  input.setAttribute("aria-describedby", error.id);
  const node = textField(label, input);
  node.append(error);
  return {
    node, focus: () => input.focus(),
    values: () => read().value ?? values,
    read() {
      const { value = {}, problem } = read();
      fill(error, problem);
      return problem ? null : value;
    },
  };
}

/** Return the control of a schema that a question cannot have; undefined for the others. */
function controlOf(schema, value, complete, valuesOf) {
  if (complete) return suggesting(schema, value, (text) => complete(text, valuesOf()));
  const kind = kindOf(schema);
  if (kind === "list") return listControl(schema, Array.isArray(value) ? value : []);
  if (kind === "json") return jsonControl(schema, value === undefined ? "" : JSON.stringify(value, null, 2));
  const isText = schema.type === "string" && choicesOf(schema) === null && !schema.format && !schema.pattern;
  return isText && !(schema.maxLength < 120) ? growing(schema, value) : undefined;
}

/** A field of one line that grows with its text. Enter sends the form, as in other fields; Shift+Enter breaks the line. */
function growing(schema, value) {
  const input = h("textarea.input.growing", {
    rows: 1, dir: "auto", autocomplete: "off", spellcheck: "false", value: value ?? "", placeholder: placeholderOf(schema),
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || input.value.includes("\n")) return;
      event.preventDefault();
      input.form?.requestSubmit();
    },
  });
  return { node: input, input, read: () => (input.value === "" ? {} : { value: input.value }) };
}

/** The example that a description names, such as "Tokyo"; none if there is only an invented one. */
function placeholderOf(schema) {
  const example = exampleOf({ ...schema, default: undefined });
  return example === "example" ? null : `such as ${example}`;
}

/** A text field with values that the server suggests. */
function suggesting(schema, given, complete) {
  const control = makeInput(schema, given);
  const list = h("datalist", { id: uniqueId("suggestions") });
  let timer;
  const suggest = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const values = await complete(control.input.value).catch(() => []);
      fill(list, values.map((value) => h("option", { value })));
    }, SUGGEST_AFTER_MS);
  };
  control.input.setAttribute("list", list.id);
  control.input.addEventListener("input", suggest);
  control.input.addEventListener("focus", suggest);
  return { ...control, node: h("div", control.input, list) };
}

/** A list of texts or numbers, one in each line. */
function listControl({ items }, given) {
  const attributes = { rows: 2, spellcheck: "false", value: given.join("\n"), placeholder: "one in each line" };
  const input = h("textarea.input.growing", attributes);
  return {
    node: input, input,
    read() {
      const lines = input.value.split("\n").filter((line) => line.trim() !== "");
      const found = lines.map((line) => (items.type === "string" ? { value: line } : readNumber(items.type, line.trim())));
      const problem = found.find((each) => each.problem)?.problem;
      if (problem) return { problem };
      return found.length > 0 ? { value: found.map(({ value }) => value) } : {};
    },
  };
}

/** Any other value, written as JSON. */
function jsonControl(schema, text) {
  const input = h("textarea.input.code.growing", {
    rows: 2, spellcheck: "false", value: text, placeholder: schema.type === "any" ? null : JSON.stringify(exampleOf(schema)),
  });
  return {
    node: input, input,
    read() {
      if (input.value.trim() === "") return {};
      let value;
      try {
        value = JSON.parse(input.value);
      } catch (error) {
        return { problem: `This is not JSON: ${error.message}.` };
      }
      if (schema.type === "array" && !Array.isArray(value)) return { problem: "Enter a JSON array: [ … ]." };
      const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
      return schema.type === "object" && !isObject ? { problem: "Enter a JSON object: { … }." } : { value };
    },
  };
}
