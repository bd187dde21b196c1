// The HTTP headers that mirror a request's body (2026-07-28, Streamable HTTP; SEP-2243).

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
