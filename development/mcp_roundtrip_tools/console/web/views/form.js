// A form for a JSON Schema of an object: one labelled field for each member, or all of them as JSON.

import { element, fill, uniqueId } from "../dom.js";
import { describeConstraints, problemOf, resolve } from "../mcp/schema.js";
import { FieldProblem, control, parseJson } from "./fields.js";

/**
 * Return the fields of an object schema.
 * @param {Object} schema
 * @typedef {(text: string, others: Object) => Promise<string[]>} Complete  suggests values; `others` are those of other fields
 * @param {{values?: Object, completions?: Record<string, Complete>, loneLabel?: string}} options
 *     `loneLabel` labels a field that is the only one, for screen readers: the page shows it elsewhere.
 * @returns {{node: Node, read: () => Object|null, focus: () => void, values: () => Object}}
 *     `read` returns the values, or null after it has marked what is wrong and moved the focus there. `values`
 *     returns what is valid.
 */
export function schemaFields(schema, { values = {}, completions = {}, loneLabel } = {}) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const current = () => collect(fields).values;
  const fields = Object.entries(schema.properties ?? {}).map(([name, member]) =>
    field(name, member, {
      root: schema, required: required.has(name), value: values[name],
      label: loneLabel && Object.keys(schema.properties).length === 1 ? loneLabel : null,
      complete: completions[name] && ((text) => completions[name](text, current())),
    }));
  return {
    node: element("div", { class: "fields" }, fields.map((each) => each.node)),
    focus: () => fields[0]?.input.focus(),
    values: current,
    read() {
      const { values: found, problems } = collect(fields);
      for (const each of fields) each.show(problems.get(each) ?? null);
      if (problems.size === 0) return found;
      [...problems.keys()][0].input.focus();
      return null;
    },
  };
}

function collect(fields) {
  const values = {};
  const problems = new Map();
  for (const each of fields) {
    try {
      const value = each.read();
      if (value !== undefined) values[each.name] = value;
    } catch (problem) {
      if (!(problem instanceof FieldProblem)) throw problem;
      problems.set(each, problem.message);
    }
  }
  return { values, problems };
}

function field(name, member, { root, required, value, complete, label: ownLabel }) {
  const schema = resolve(member, root);
  const [id, labelId, noteId, hintId, errorId] = ["field", "label", "note", "hint", "error"].map(uniqueId);
  const made = control(schema, { root, required, id, complete, value: value ?? schema.default ?? undefined });
  const error = element("p", { id: errorId, class: "error", hidden: true });
  const hint = element("p", { id: hintId, class: "hint" }, hintOf(schema));
  const text = ownLabel ?? (schema.title && !isDerived(schema.title, name) ? schema.title : name);
  const note = [typeName(schema), required ? "required" : ""].filter(Boolean).join(" · ");
  const row = element("div", { class: ownLabel ? "visually-hidden" : "label-row" },
    element(made.isGroup ? "span" : "label", { id: labelId, class: "label-name", for: made.isGroup ? null : id }, text),
    element("span", { id: noteId, class: "label-note" }, note));
  const node = element("div", { class: "field" }, row, hint, made.node, error);
  const described = made.isGroup ? node : made.input;
  described.setAttribute("aria-describedby", `${noteId} ${hintId} ${errorId}`);
  if (made.isGroup) {
    node.setAttribute("role", "group");
    node.setAttribute("aria-labelledby", labelId);
  }
  return {
    name, node, input: made.input,
    read() {
      const found = made.read();
      if (found === undefined && required) throw new FieldProblem(made.missing ?? "Enter a value.");
      const problem = found === undefined ? null : problemOf(found, schema, root);
      if (problem) throw new FieldProblem(problem);
      return found;
    },
    show(message) {
      error.hidden = message === null;
      fill(error, message ?? "");
      if (!made.isGroup) made.input.setAttribute("aria-invalid", String(message !== null));
    },
  };
}

/** pydantic derives titles from names ("workItemId" becomes "Workitemid"): the name says more. */
function isDerived(title, name) {
  const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  return letters(title) === letters(name);
}

function hintOf(schema) {
  const constraints = describeConstraints(schema);
  const description = schema.description ?? "";
  if (!constraints) return description;
  return [description, description && " ", element("span", { class: "constraints" }, constraints)];
}

function typeName(schema) {
  const type = Array.isArray(schema.type) ? schema.type.filter((each) => each !== "null").join(" or ") : schema.type;
  if (schema.enum || schema.oneOf) return "";
  if (type === "array") return schema.items?.type ? `list of ${schema.items.type}s` : "list";
  return { boolean: "yes or no" }[type] ?? type ?? "any";
}

/**
 * Return the fields of a schema with a switch to JSON, where anything can be sent, also what is invalid.
 * @param {{draft?: {values: Object, text: string|null}}} options  what `draft` returned of an earlier editor, for another schema
 * @returns the same as `schemaFields`
 */
export function argumentsEditor(schema, { draft, ...options } = {}) {
  const values = draft?.values ?? options.values;
  let isText = typeof draft?.text === "string";
  let editor = isText ? jsonFields(values, draft.text) : schemaFields(schema, { ...options, values });
  const place = element("div", {}, editor.node);
  const toggle = element("button",
    { type: "button", class: "quiet", "aria-pressed": String(isText), onclick: flip }, "Edit as JSON");

  function flip() {
    const values = editor.values();
    isText = !isText;
    editor = isText ? jsonFields(values) : schemaFields(schema, { ...options, values });
    toggle.setAttribute("aria-pressed", String(isText));
    fill(place, editor.node);
    editor.focus();
  }

  return {
    node: place, toggle,
    draft: () => ({ values: editor.values(), text: editor.text?.() ?? null }),
    focus: () => editor.focus(), read: () => editor.read(), values: () => editor.values(),
  };
}

function jsonFields(values, given = JSON.stringify(values, null, 2)) {
  const [id, errorId] = [uniqueId("json"), uniqueId("error")];
  const text = element("textarea", {
    id, class: "input code growing", rows: 4, spellcheck: "false", "aria-describedby": errorId,
    value: given,
  });
  const error = element("p", { id: errorId, class: "error", hidden: true });
  const parse = () => (text.value.trim() === "" ? {} : parseJson(text.value));
  return {
    node: element("div", { class: "field" },
      element("div", { class: "label-row" }, element("label", { for: id, class: "label-name" }, "Arguments"),
        element("span", { class: "label-note" }, "JSON, sent as it is")), text, error),
    focus: () => text.focus(),
    text: () => text.value,
    values() {
      try { return parse(); } catch { return values; }
    },
    read() {
      try {
        const found = parse();
        error.hidden = true;
        return found;
      } catch (problem) {
        error.hidden = false;
        fill(error, problem.message);
        text.focus();
        return null;
      }
    },
  };
}
