// Builds DOM nodes. Every value becomes text or an attribute; nothing is ever parsed as HTML.

const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate", "disabled", "readOnly", "open", "hidden"]);

/**
 * Create an element. `onclick` and the like are event listeners; `dataset` is an object; null, undefined and
 * false leave an attribute out, and true sets it without a value.
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  append(node, children);
  return node;
}

function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") node.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(node.dataset, value);
  else if (PROPERTIES.has(name)) node[name] = value;
  else node.setAttribute(name, value === true ? "" : String(value));
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
 * Build the children of a node again. The focus stays on the control of the same name (data-control); if there is none
 * any more, it goes to the heading. The page does not scroll: the user may read elsewhere.
 */
export function rebuild(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement.dataset.control : undefined;
  fill(node, ...children);
  if (focused === undefined) return;
  const same = node.querySelector(`[data-control="${CSS.escape(focused)}"]`);
  (same ?? node.querySelector("[tabindex='-1']"))?.focus({ preventScroll: true });
}

let lastId = 0;

/** Return an id that no other element has. */
export function uniqueId(prefix = "id") {
  return `${prefix}-${++lastId}`;
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
  home: "M2.5 7.5 8 3l5.5 4.5V13h-11z",
  warning: "M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.4v.1",
};

/** Return an icon that screen readers skip: the text beside it, or the button's label, says what it means. */
export function icon(name) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(namespace, "path");
  path.setAttribute("d", ICONS[name] ?? "");
  svg.append(path);
  return svg;
}

/** Return a radio button with its label. `control` names it, so that the focus finds it in a page that is built again. */
export function radioOption(name, control, checked, onchange, ...label) {
  return element("label", { class: "option" },
    element("input", { type: "radio", name, dataset: { control }, checked, onchange }), element("span", {}, label));
}

/** Tell a screen reader something that changed elsewhere on the page. */
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}

/** Return the address if a browser may open it from here (http or https), or null. */
export function webAddress(text) {
  try {
    const { protocol, href } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? href : null;
  } catch {
    return null;
  }
}
