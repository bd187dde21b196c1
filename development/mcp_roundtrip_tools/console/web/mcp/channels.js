// Questions that do not come as input requests: a link to the question page, a page to open, or a text for the model.
// A client that cannot show questions gets them in this way; the next call with the same arguments continues.

import { parseJson } from "../format.js";

const PAGE_LINK = /https?:\/\/[^\s"'<>]+\/questions\?token=[\w-]+/;
const URL_REQUIRED = -32042;
const MODEL_QUESTION = /^Key: ("(?:[^"\\]|\\.)*")\. The answer is .*? that fits this JSON Schema: (\{.*\})$/;

/**
 * @typedef {object} Channel
 * @property {"page" | "url" | "model" | "app" | "wait"} channel
 * @property {string} [url] of the question page
 * @property {Array<{url: string, message: string}>} [elicitations] the pages to open, of error -32042
 * @property {Object<string, {method: string, params: object}>} [requests] the questions for the model, by key
 */

/**
 * Return how a response asks, if not through input requests; null if it asks nothing.
 * @param {object} message the JSON-RPC response
 * @returns {Channel | null}
 */
export function questionChannel(message) {
  const { result, error } = message ?? {};
  if (error?.code === URL_REQUIRED) return { channel: "url", elicitations: error.data?.elicitations ?? [] };
  const texts = (result?.content ?? []).filter(({ type }) => type === "text").map(({ text }) => text);
  const text = texts.join("\n");
  const link = PAGE_LINK.exec(text);
  if (link !== null) return { channel: "page", url: link[0] };
  const requests = modelQuestions(text);
  if (Object.keys(requests).length > 0) return { channel: "model", requests };
  if (result?._meta?.["mcp-roundtrip/questions"] !== undefined) return { channel: "app" };
  return result?._meta?.["mcp-roundtrip/parkedCall"] === undefined ? null : { channel: "wait" };
}

/** Return the questions of a text for the model as elicitations. */
export function modelQuestions(text) {
  const requests = {};
  let message = [];
  for (const line of text.split("\n")) {
    const found = MODEL_QUESTION.exec(line);
    const requestedSchema = found && parseJson(found[2]); // null: a tool's own text that looks like a question
    if (requestedSchema) {
      const params = { mode: "form", message: message.join("\n"), requestedSchema };
      requests[parseJson(found[1])] = { method: "elicitation/create", params };
    }
    message = requestedSchema || line === "" ? [] : [...message, line];
  }
  return requests;
}

/** Return the arguments of the call that continues another one: its own, and the code for a caller without an identity. */
export function continuedArguments(given, message) {
  return { ...given, ...message?.result?._meta?.["mcp-roundtrip/parkedCall"]?.arguments };
}

/** Return the arguments of the next call: those of the last one, and the answers that the model passes on. */
export function withModelAnswers(given, answers) {
  return { ...given, input_responses: { ...given.input_responses, ...answers } };
}
