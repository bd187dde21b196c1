// Shows a value as JSON with coloured tokens, or a text as it is, with a button that copies it.

import { announce, append, element, icon } from "../dom.js";
import { bytes } from "../format.js";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MAX_COLOURED = 100_000;
const MAX_SHOWN = 400_000;
const LONG = 3000;

/** Return a block with the value; texts that are JSON are shown as such. */
export function jsonView(value, { label = "JSON" } = {}) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  const isJson = typeof value !== "string";
  const code = element("pre", { class: "code", tabindex: 0, role: "region", "aria-label": label });
  append(code, isJson && text.length <= MAX_COLOURED ? tokens(text) : [text.slice(0, MAX_SHOWN)]);
  if (text.length > MAX_SHOWN) {
    code.append(element("em", {}, `\n… ${bytes(text.length - MAX_SHOWN)} more; copy it to see all.`));
  }
  return element("div", { class: "code-block" }, copyButton(text, `Copy ${label}`), code);
}

/** Return a text: a paragraph, or a block that scrolls if it is long. */
export function textView(text, label = "text") {
  return text.length > LONG ? jsonView(text, { label }) : element("p", { class: "prose", dir: "auto" }, text);
}

function tokens(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    nodes.push(text.slice(end, match.index));
    const [whole, string, colon] = match;
    if (string && colon) nodes.push(element("span", { class: "key" }, string), colon);
    else nodes.push(element("span", { class: string ? "string" : "literal" }, whole));
    end = match.index + whole.length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** Return a button that copies a text (or the result of a function) and says so. */
export function copyButton(text, label = "Copy") {
  const button = element("button", { type: "button", class: "copy quiet", "aria-label": label, title: label, onclick: copy },
    icon("copy"));
  async function copy() {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      announce("Copied.");
      button.classList.add("copied");
      setTimeout(() => button.classList.remove("copied"), 1200);
    } catch {
      announce("The browser did not allow copying.");
    }
  }
  return button;
}
