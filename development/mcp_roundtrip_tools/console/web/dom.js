// Builds DOM nodes. Every value becomes text or an attribute; nothing is ever parsed as HTML.

import { element, uniqueId } from "./form.js";

export { uniqueId };

const isAttributes = (value) => value?.constructor === Object;

/**
 * Create an element: `h("p.hint", { id }, "text")`.
 * @param {string} selector  the name of the element, and its classes
 * @param {...any} rest  attributes (see `element` in form.js), which may be left out, and children: lists are flattened,
 *     and null, undefined and false are left out
 */
export function h(selector, ...rest) {
  const [tag, ...classes] = selector.split(".");
  const attributes = isAttributes(rest[0]) ? rest.shift() : {};
  return append(element(tag, { class: classes.join(" ") || null, ...attributes }), rest);
}

/** Append nodes and texts; lists are flattened, and null, undefined and false are left out. */
export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : visible(String(child)));
  }
  return node;
}

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Write characters that are invisible, or that reorder the text around them, as escapes: texts come from tools. */
export function visible(text) {
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(/\r\n/g, "\n").replace(INVISIBLE, escape);
}

/** Replace all children of a node. */
export function fill(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

/**
 * Build the children of a node again. The focus stays on the control of the same name: data-control, or its label. If
 * there is none any more, it goes to the heading. The page does not scroll: the user may read elsewhere.
 */
export function rebuild(node, ...children) {
  const focused = node.contains(document.activeElement) ? controlName(document.activeElement) : undefined;
  fill(node, ...children);
  if (focused === undefined) return;
  const same = [...node.querySelectorAll("*")].find((each) => controlName(each) === focused);
  (same ?? node.querySelector("[tabindex='-1']"))?.focus({ preventScroll: true });
}

const controlName = ({ dataset, labels }) => dataset.control ?? labels?.[0]?.textContent;

/** Return a button: `button("Send", send)`, `button("Call.primary", null, { type: "submit" })`. */
export function button(label, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

/** Return details that are built when they are opened: they can be long. */
export function lazyDetails(summary, build, attributes = {}) {
  const place = h("div");
  const ontoggle = ({ target }) => target.open && !place.hasChildNodes() && append(place, [build()]);
  return h("details", { ontoggle, ...attributes }, h("summary", summary), place);
}

/** Return a text field with its label above. */
export function textField(label, input) {
  const id = uniqueId("field");
  input.id = id;
  return h("div.field", h("label.label-name", { for: id }, label), input);
}

/** Return a list of facts; those without a value are left out. */
export function factList(facts) {
  const rows = facts.filter(([, value]) => value).map(([name, value]) => h("div", h("dt", name), h("dd", value)));
  return h("dl.state-facts", rows);
}

const ICONS = {
  asked: "M5.6 6a2.4 2.4 0 1 1 3.5 2.1c-.7.4-1.1.8-1.1 1.6M8 12.1v.1",
  answered: "M3 8.5 6.5 12 13 4.5",
  ran: "M5 3.5v9l7.5-4.5z",
  replayed: "M12.5 8a4.5 4.5 0 1 1-1.4-3.2M12.6 2.2v3h-3",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.4 10.4 14 14",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  open: "M6 3.5H3v9.5h9.5v-3M9 2.8h4.2V7M13 3 7.5 8.5",
  chevron: "M6 4l4 4-4 4",
  cross: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  task: "M3 3h10v10H3zM5.5 8l2 2 3.2-4",
  activity: "M1.5 8.5h3l2-5 3 9 2-4h3",
  client: "M2.5 3h11v8h-11zM6 13.5h4",
  warning: "M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.4v.1",
};

/** Return an icon that screen readers skip: the text beside it, or the button's label, says what it means. */
export function icon(name) {
  const create = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);
  const [svg, path] = [create("svg"), create("path")];
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** Tell a screen reader something that changed elsewhere on the page. */
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}
