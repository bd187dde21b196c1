// The controls of a form, one for each kind of schema. A control has a node, the element that a label names,
// and `read`, which returns the value, undefined for "left out", or throws FieldProblem.

import { element, icon, uniqueId } from "../dom.js";
import { exampleOf, kindOf, optionsOf, parseNumber, resolve } from "../mcp/schema.js";
import { combobox } from "./combobox.js";

/** What was typed is no value of the schema; the message says what to enter. */
export class FieldProblem extends Error {}

const FEW = 5;
const CHOOSE = "Choose an option.";

/**
 * Return the control for a schema.
 * @param {Object} schema  resolved
 * @param {{root: Object, value: any, required: boolean, id: string, complete?: (text: string) => Promise<string[]>}} options
 */
export function control(schema, options) {
  return MAKERS[kindOf(schema, options.root)](schema, options);
}

const MAKERS = {
  text: (schema, options) => {
    if (options.complete) return textControl(combobox(options));
    const isLong = !schema.format && !schema.pattern && !(schema.maxLength < 120);
    return textControl(isLong ? growing(options) : input(options));
  },
  integer: (schema, options) => numberControl(input({ ...options, mode: "numeric" })),
  number: (schema, options) => numberControl(input({ ...options, mode: "decimal" })),
  boolean: (schema, options) => choice([{ value: true, title: "Yes" }, { value: false, title: "No" }], options),
  choice: (schema, options) => choice(optionsOf(schema), options),
  choices: (schema, options) => choices(optionsOf(resolve(schema.items, options.root)), options),
  list: (schema, options) => list(resolve(schema.items, options.root), schema, options),
  json: (schema, options) => jsonControl(schema, options),
};

function input({ id, value, mode }) {
  const node = element("input", {
    id, class: "input", type: "text", autocomplete: "off", spellcheck: "false", inputmode: mode, value: value ?? "",
  });
  return { node, input: node };
}

/** A field of one line that grows with its text. Enter sends the form, as in other fields; Shift+Enter breaks the line. */
function growing({ id, value }) {
  const node = element("textarea", {
    id, class: "input growing", rows: 1, autocomplete: "off", spellcheck: "false", value: value ?? "",
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || node.value.includes("\n")) return;
      event.preventDefault();
      node.form?.requestSubmit();
    },
  });
  return { node, input: node };
}

function textControl(made) {
  return { ...made, read: () => (made.input.value === "" ? undefined : made.input.value) };
}

function numberControl(made) {
  return {
    ...made,
    read() {
      if (made.input.value.trim() === "") return undefined;
      const number = parseNumber(made.input.value);
      if (number === null) throw new FieldProblem("Enter a number.");
      return number;
    },
  };
}

/** One of some options: buttons for a few, otherwise a list. */
function choice(options, { id, value, required }) {
  return options.length <= FEW ? radios(options, { id, value, required }) : select(options, { id, value });
}

function select(options, { id, value }) {
  const node = element("select", { id, class: "input" },
    element("option", { value: "" }, "Choose…"),
    options.map((option, index) => element("option", { value: index, selected: option.value === value }, option.title)));
  return { node, input: node, missing: CHOOSE, read: () => (node.value === "" ? undefined : options[Number(node.value)].value) };
}

function radios(options, { id, value, required }) {
  const name = uniqueId("choice");
  const all = required ? options : [...options, { value: undefined, title: "Leave out" }];
  const inputs = all.map((option, index) => element("input", {
    type: "radio", name, id: index === 0 ? id : null, value: index, checked: option.value === value,
  }));
  const node = element("div", { class: "choices" }, all.map((option, index) => optionView(inputs[index], option)));
  const chosen = () => all[inputs.findIndex((each) => each.checked)];
  return { node, input: inputs[0], isGroup: true, missing: CHOOSE, read: () => chosen()?.value };
}

function optionView(input, { value, title }) {
  return element("label", { class: value === undefined ? "option none" : "option" }, input, element("span", {}, title));
}

function choices(options, { id, value, required }) {
  const chosenBefore = Array.isArray(value) ? value : [];
  const inputs = options.map((option, index) =>
    element("input", { type: "checkbox", id: index === 0 ? id : null, checked: chosenBefore.includes(option.value) }));
  const node = element("div", { class: "choices" }, options.map((option, index) => optionView(inputs[index], option)));
  return {
    node, input: inputs[0], isGroup: true, missing: CHOOSE,
    read() {
      const chosen = options.filter((option, index) => inputs[index].checked).map((option) => option.value);
      return chosen.length === 0 && !required ? undefined : chosen;
    },
  };
}

/** A list of texts or numbers, one field for each item. */
function list(items, schema, { id, value }) {
  const given = Array.isArray(value) ? value : [];
  const rows = element("ol", { class: "items" });
  const isText = kindOf(items) === "text";
  const first = Math.max(given.length, schema.minItems ?? 1, 1);
  const add = (text, rowId) => {
    const field = element("input", {
      id: rowId, class: "input", type: "text", autocomplete: "off", spellcheck: "false", value: text ?? "",
      "aria-label": `Item ${rows.children.length + 1}`,
    });
    const row = element("li", {}, field, element("button", {
      type: "button", class: "quiet", "aria-label": "Remove this item", title: "Remove", onclick: () => remove(row),
    }, icon("cross")));
    rows.append(row);
    return field;
  };
  function remove(row) {
    const neighbour = row.nextElementSibling ?? row.previousElementSibling;
    if (neighbour === null) row.querySelector("input").value = "";
    else row.remove();
    (neighbour ?? row).querySelector("input").focus();
  }
  for (let index = 0; index < first; index++) add(given[index], index === 0 ? id : null);
  const more = element("button", { type: "button", class: "quiet add", onclick: () => add().focus() },
    icon("plus"), "Add an item");
  return {
    node: element("div", {}, rows, more), input: rows.querySelector("input"), isGroup: true,
    read() {
      const texts = [...rows.querySelectorAll("input")].map((field) => field.value).filter((text) => text !== "");
      if (texts.length === 0) return undefined;
      return isText ? texts : texts.map(number);
    },
  };
}

function number(text) {
  const found = parseNumber(text);
  if (found === null) throw new FieldProblem(`Enter numbers; “${text}” is none.`);
  return found;
}

/** Any other value, written as JSON. */
function jsonControl(schema, { id, value, root }) {
  const expected = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  const node = element("textarea", {
    id, class: "input code growing", rows: 2, spellcheck: "false",
    placeholder: `JSON, such as ${JSON.stringify(exampleOf(schema, root))}`,
    value: value === undefined ? "" : JSON.stringify(value, null, 2),
  });
  return {
    node, input: node,
    read() {
      if (node.value.trim() === "") return undefined;
      const parsed = parseJson(node.value);
      const isArray = Array.isArray(parsed);
      if (expected === "array" && !isArray) throw new FieldProblem("Enter a JSON array: [ … ].");
      if (expected === "object" && (isArray || parsed === null || typeof parsed !== "object")) {
        throw new FieldProblem("Enter a JSON object: { … }.");
      }
      return parsed;
    },
  };
}

/** Return the value of a JSON text. Throws FieldProblem. */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FieldProblem(`This is not JSON: ${error.message}.`);
  }
}
