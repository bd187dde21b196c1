// Shows a value as JSON, or a text as it is, with a button that copies it.

import { announce, button, h, icon } from "../dom.js";
import { bytes } from "../format.js";

const MAX_SHOWN = 400_000;
const LONG = 3000;

/** Return a block with the value; a text is shown as it is. */
export function jsonView(value, label) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  const more = text.length > MAX_SHOWN && h("em", `\n… ${bytes(text.length - MAX_SHOWN)} more; copy it to see all.`);
  const code = h("pre.code", { tabindex: 0, role: "region", "aria-label": label }, text.slice(0, MAX_SHOWN), more);
  return h("div.code-block", copyButton(text, `Copy ${label}`), code);
}

/** Return a text: a paragraph, or a block that scrolls if it is long. */
export function textView(text, label = "text") {
  return text.length > LONG ? jsonView(text, label) : h("p.prose", { dir: "auto" }, text);
}

/** Return a button that copies a text and says so. */
export function copyButton(text, label) {
  const copy = () => navigator.clipboard.writeText(text)
    .then(() => announce("Copied."), () => announce("The browser did not allow copying."));
  return button(icon("copy"), copy, { class: "copy quiet", "aria-label": label, title: label });
}
