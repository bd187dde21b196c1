// Reads the body of an MCP response: a JSON document, or a stream of server-sent events.

import { parseJson } from "../format.js";

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
