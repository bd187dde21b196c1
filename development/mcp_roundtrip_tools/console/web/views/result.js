// The result of a call: content blocks, structured content, messages of a prompt, contents of a resource; or its error.

import { element, icon } from "../dom.js";
import { bytes } from "../format.js";
import { outcomeOf, resultOf } from "../calls.js";
import { jsonView, textView } from "./json_view.js";

/** Return the view of a round's final response. */
export function resultView(round) {
  if (round.error) return errorView(round.error);
  const result = resultOf(round);
  if (outcomeOf(round) === "failed") {
    const blocks = (result.content ?? []).map(block);
    return element("div", { class: "result failed" }, heading("warning", "The tool reports an error"), blocks);
  }
  return element("div", { class: "result" }, heading("answered", "Result"), contentsOf(result));
}

export function heading(name, text) {
  return element("h3", { class: "result-kind", tabindex: -1 }, icon(name), text);
}

function contentsOf(result) {
  if (result.messages) {
    return [
      result.description && element("p", { class: "hint" }, result.description),
      element("ol", { class: "messages" }, result.messages.map(({ role, content }) =>
        element("li", {}, element("span", { class: "role" }, role), [content].flat().map(block)))),
    ];
  }
  if (result.contents) return result.contents.map(resource);
  if (result.structuredContent !== undefined) return structured(result);
  const blocks = (result.content ?? []).map(block);
  return blocks.length > 0 ? blocks : element("p", { class: "hint" }, "The result is empty.");
}

/** Structured content, and blocks that do not just repeat it as text (2026-07-28, server/tools). */
function structured({ structuredContent, content = [] }) {
  const repeats = ({ type, text }) => type === "text" && sameJson(text, structuredContent);
  return [valueView(structuredContent), content.filter((each) => !repeats(each)).map(block)];
}

function sameJson(text, value) {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value);
  } catch {
    return false;
  }
}

/** A flat object as a table of names and values, anything else as JSON. */
function valueView(value) {
  if (value === null || typeof value !== "object") return plain(value);
  const isFlat = !Array.isArray(value)
    && Object.values(value).every((member) => member === null || typeof member !== "object");
  if (!isFlat) return jsonView(value, { label: "result" });
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0] === "result") return plain(value.result);
  return element("dl", { class: "values" }, Object.entries(value).map(([name, member]) => [
    element("dt", {}, name),
    element("dd", { class: typeof member }, textView(String(member), name)),
  ]));
}

const plain = (value) => textView(String(value), "result");

function block(content) {
  switch (content?.type) {
    case "text": return textOrJson(content.text);
    case "image": return media("img", content, { alt: "Image of the result" });
    case "audio": return media("audio", content, { controls: true });
    case "resource": return resource(content.resource);
    case "resource_link": return link(content);
    default: return jsonView(content, { label: "content block" });
  }
}

function textOrJson(text) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object") return jsonView(value, { label: "text" });
  } catch { /* plain text */ }
  return textView(text);
}

function media(tag, { data, mimeType }, attributes) {
  const isMedia = /^(image|audio)\/[\w.+-]+$/.test(mimeType ?? "");
  if (!isMedia) return element("p", { class: "hint" }, `${mimeType}, ${bytes((data ?? "").length)} of Base64`);
  return element(tag, { class: "media", src: `data:${mimeType};base64,${data}`, ...attributes });
}

function link({ uri, name, title, description }) {
  return element("p", { class: "resource-link" },
    element("a", { href: `#/resources/${encodeURIComponent(uri)}` }, title ?? name ?? uri), " ", element("code", {}, uri),
    description && element("span", { class: "hint" }, description));
}

function resource({ uri, mimeType, text, blob }) {
  const isJson = /\bjson\b/.test(mimeType ?? "");
  return element("figure", { class: "resource" },
    element("figcaption", {}, element("code", {}, uri), " ", mimeType),
    text === undefined ? blobView(blob, mimeType) : isJson ? textOrJson(text) : jsonView(text, { label: "resource" }));
}

function blobView(blob, mimeType) {
  return mimeType?.startsWith("image/") ? media("img", { data: blob, mimeType }, { alt: "Image of the resource" })
    : element("p", { class: "hint" }, `${bytes(Math.floor((blob ?? "").length * 0.75))} of binary data`);
}

/** Return the view of an error that is no result. */
export function errorView({ code, message, data, status }) {
  const kind = [code !== undefined && `Error ${code}`, status !== undefined && `HTTP ${status}`].filter(Boolean).join(" · ");
  return element("div", { class: "result failed", role: "group", "aria-label": "Error" },
    heading("warning", kind || "No response"),
    element("p", { class: "prose", dir: "auto" }, message),
    data !== undefined && jsonView(data, { label: "error data" }));
}
