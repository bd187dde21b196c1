// The result of a call: content blocks, structured content, messages of a prompt, contents of a resource; or its error.

import { h, icon } from "../dom.js";
import { bytes, parseJson, sameJson } from "../format.js";
import { outcomeOf, resultOf } from "../rounds.js";
import { jsonView, textView } from "./json_view.js";

/** Return the view of a round's final response. */
export function resultView(round) {
  if (round.error) return errorView(round.error);
  const result = resultOf(round);
  if (outcomeOf(round) !== "failed") return h("div.result", heading("answered", "Result"), contentsOf(result));
  return failure("The tool reports an error", blocksOf(result));
}

/** Return a view of what went wrong. */
export const failure = (title, ...children) => h("div.result.failed", heading("warning", title), children);

const heading = (name, text) => h("h3.result-kind", { tabindex: -1 }, icon(name), text);

function contentsOf(result) {
  if (result.messages) {
    const message = ({ role, content }) => h("li", h("span.role", role), [content].flat().map(block));
    return [result.description && h("p.hint", result.description), h("ol.messages", result.messages.map(message))];
  }
  if (result.contents) return result.contents.map(resource);
  if (result.structuredContent !== undefined) return structured(result);
  const blocks = blocksOf(result);
  return blocks.length > 0 ? blocks : h("p.hint", "The result is empty.");
}

const blocksOf = ({ content = [] }) => content.map(block);

/** Structured content, and blocks that do not just repeat it as text (2026-07-28, server/tools). */
function structured({ structuredContent, content = [] }) {
  const isOther = ({ type, text }) => type !== "text" || !sameJson(parseJson(text, undefined), structuredContent);
  return [valueView(structuredContent), content.filter(isOther).map(block)];
}

const isSimple = (value) => value === null || typeof value !== "object";
const isFlat = (value) => !isSimple(value) && !Array.isArray(value) && Object.values(value).every(isSimple);

/** A flat object as names and values, anything else as JSON. */
function valueView(value) {
  if (isSimple(value)) return textView(String(value), "result");
  const entries = Object.entries(value);
  if (entries.length === 1 && entries[0][0] === "result") return valueView(value.result);
  if (!isFlat(value)) return jsonView(value, "result");
  return h("dl.values", entries.map(([name, member]) => [h("dt", name), h("dd", textView(String(member), name))]));
}

function block(content) {
  switch (content?.type) {
    case "text": return textOrJson(content.text);
    case "image": return media("img", content, { alt: "Image of the result" });
    case "audio": return media("audio", content, { controls: true });
    case "resource": return resource(content.resource);
    case "resource_link": return link(content);
    default: return jsonView(content, "content block");
  }
}

function textOrJson(text) {
  const value = parseJson(text);
  return value !== null && typeof value === "object" ? jsonView(value, "text") : textView(text);
}

function media(tag, { data = "", mimeType }, attributes) {
  const isMedia = /^(image|audio)\/[\w.+-]+$/.test(mimeType ?? "");
  if (!isMedia) return h("p.hint", `${mimeType}, ${bytes(data.length)} of Base64`);
  return h(`${tag}.media`, { src: `data:${mimeType};base64,${data}`, ...attributes });
}

function link({ uri, name, title, description }) {
  return h("p.resource-link",
    h("a", { href: `#/resources/${encodeURIComponent(uri)}` }, title ?? name ?? uri), " ", h("code", uri),
    description && h("span.hint", description));
}

function resource({ uri, mimeType, text, blob }) {
  const caption = h("figcaption", h("code", uri), " ", mimeType);
  const isJson = /\bjson\b/.test(mimeType ?? "");
  if (text !== undefined) return h("figure.resource", caption, isJson ? textOrJson(text) : jsonView(text, "resource"));
  const isImage = mimeType?.startsWith("image/");
  const [tag, attributes] = isImage ? ["img", { alt: "Image of the resource" }] : ["audio", { controls: true }];
  return h("figure.resource", caption, media(tag, { data: blob, mimeType }, attributes));
}

/** Return the view of an error that is no result. */
function errorView({ code, message, data, status }) {
  const kind = [code !== undefined && `Error ${code}`, status && `HTTP ${status}`].filter(Boolean).join(" · ");
  const text = h("p.prose", { dir: "auto" }, message);
  return failure(kind || "No response", text, data !== undefined && jsonView(data, "error data"));
}
