// MCP over HTTP (2026-07-28, Streamable HTTP; SEP-2243): the headers that mirror a request's body, and the body of a
// response, which is a JSON document or a stream of server-sent events.

import { parseJson } from "../format.js";

const NAME_PARAMETER = {
  "tools/call": "name", "prompts/get": "name", "resources/read": "uri",
  "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
};

const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const SENTINEL = /^=\?base64\?.*\?=$/s;

/** Return a value as a header: as it is, or in Base64 if a header cannot hold it. */
export function encodeHeader(value) {
  if (PLAIN.test(value) && !SENTINEL.test(value)) return value;
  const bytes = new TextEncoder().encode(value);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

/** Return the header that mirrors the request's name, URI or task id, if its method has one. */
export function nameHeader(method, params) {
  const value = params[NAME_PARAMETER[method]];
  return typeof value === "string" ? { "mcp-name": encodeHeader(value) } : {};
}

/** Return the Mcp-Param-* headers of a call; `inputSchema` marks the arguments with `x-mcp-header`. */
export function parameterHeaders(inputSchema, given) {
  const headers = {};
  for (const [name, schema] of Object.entries(inputSchema?.properties ?? {})) {
    const value = given?.[name];
    if (value === undefined || value === null) continue;
    if (schema["x-mcp-header"] && typeof value !== "object")
      headers[`mcp-param-${schema["x-mcp-header"].toLowerCase()}`] = encodeHeader(String(value));
    else if (typeof value === "object" && !Array.isArray(value))
      Object.assign(headers, parameterHeaders(schema, value));
  }
  return headers;
}

/**
 * Return the JSON-RPC response to the request with this id, and the notifications that came before it. A body
 * that is neither is returned as text.
 */
export function readBody(contentType, text, id) {
  if (!contentType.includes("text/event-stream")) return { body: parseJson(text, text), notifications: [] };
  const messages = events(text).map((event) => parseJson(event, event));
  const body = messages.find((message) => message?.id === id && message.method === undefined);
  return {
    body: body ?? messages.at(-1) ?? text,
    notifications: messages.filter((message) => message !== body && typeof message?.method === "string"),
  };
}

function events(text) {
  return text
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map((event) => event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:")))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n"));
}
