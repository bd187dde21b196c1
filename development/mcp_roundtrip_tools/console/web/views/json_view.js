// Shows a value as JSON with coloured tokens, or a text as it is, with a button that copies it.

import { announce, append, button, h, icon } from "../dom.js";
import { bytes } from "../format.js";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MAX_COLOURED = 100_000;
const MAX_SHOWN = 400_000;
const LONG = 3000;

/** Return a block with the value; a text is shown as it is. */
export function jsonView(value, label) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  const isColoured = typeof value !== "string" && text.length <= MAX_COLOURED;
  const shown = isColoured ? tokens(text) : [text.slice(0, MAX_SHOWN)];
  if (text.length > MAX_SHOWN) shown.push(h("em", `\n… ${bytes(text.length - MAX_SHOWN)} more; copy it to see all.`));
  const code = append(h("pre.code", { tabindex: 0, role: "region", "aria-label": label }), shown);
  return h("div.code-block", copyButton(text, `Copy ${label}`), code);
}

/** Return a text: a paragraph, or a block that scrolls if it is long. */
export function textView(text, label = "text") {
  return text.length > LONG ? jsonView(text, label) : h("p.prose", { dir: "auto" }, text);
}

function tokens(text) {
  const nodes = [];
  let end = 0;
  for (const { 0: whole, 1: string, 2: colon, index } of text.matchAll(TOKEN)) {
    const kind = colon ? "key" : string ? "string" : "literal";
    nodes.push(text.slice(end, index), h(`span.${kind}`, string ?? whole), colon);
    end = index + whole.length;
  }
  return [...nodes, text.slice(end)];
}

/** Return a button that copies a text and says so. */
export function copyButton(text, label) {
  const copy = () => navigator.clipboard.writeText(text)
    .then(() => announce("Copied."), () => announce("The browser did not allow copying."));
  return button(icon("copy"), copy, { class: "copy quiet", "aria-label": label, title: label });
}
