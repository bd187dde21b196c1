// Questions that do not come as input requests: a link to the question page, a page to open, or a text for the model.
// A client that cannot show questions gets them in this way; the next call with the same arguments continues.

const PAGE_LINK = /https?:\/\/[^\s"'<>]+\/questions\?token=[\w-]+/;
const URL_REQUIRED = -32042;
const MODEL_QUESTION = /^Key: "(?:[^"\\]|\\.)*"\. The answer is .*? that fits this JSON Schema: \{.*\}$/m;

/**
 * Return how a response asks, if not through input requests, and the pages to open; null if it asks nothing.
 * @param {object} message the JSON-RPC response
 * @returns {{channel: "page" | "url" | "model" | "app" | "wait", pages?: Array<{url: string, message?: string}>} | null}
 */
export function questionChannel({ result, error } = {}) {
  if (error?.code === URL_REQUIRED) return { channel: "url", pages: error.data?.elicitations ?? [] };
  const text = (result?.content ?? []).filter(({ type }) => type === "text").map((block) => block.text).join("\n");
  const link = PAGE_LINK.exec(text);
  if (link !== null) return { channel: "page", pages: [{ url: link[0] }] };
  if (MODEL_QUESTION.test(text)) return { channel: "model" };
  if (result?._meta?.["mcp-roundtrip/questions"] !== undefined) return { channel: "app" };
  return result?._meta?.["mcp-roundtrip/parkedCall"] === undefined ? null : { channel: "wait" };
}

/** Return the arguments of the call that continues another one: its own, and the code for a caller without an identity. */
export function continuedArguments(given, message) {
  return { ...given, ...message?.result?._meta?.["mcp-roundtrip/parkedCall"]?.arguments };
}
