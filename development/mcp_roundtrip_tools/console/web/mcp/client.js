// Sends JSON-RPC requests to the MCP endpoint, as a client of the profile would: its protocol version,
// capabilities, name and access token.

import { nameHeader, parameterHeaders, readBody } from "./http.js";
import { prepareLegacy, sessionOf } from "./legacy.js";
import { authorization, forgetTokens, isLegacy, metaOf } from "./profile.js";

/** An answer that is no result: a JSON-RPC error, an HTTP status, or no answer. */
export class McpError extends Error {
  constructor({ message, code, data, status }) {
    super(message);
    Object.assign(this, { code, data, status });
  }
}

export function createClient(store) {
  let lastId = 0;

  /**
   * Send one request. Never throws: `error` says why there is no result.
   * @param {string} method
   * @param {Object} params
   * @param {{profile?: Profile, tool?: Object, signal?: AbortSignal, onRequest?: (request: Object) => void}} options
   *     `tool` is the definition of the called tool, which may mirror arguments in headers.
   */
  async function exchange(method, params, { profile = store.state.profile, tool, signal, onRequest } = {}) {
    const started = performance.now();
    const sent = { startedAtMs: Date.now(), exchangeId: null, request: null, response: null };
    const elapsed = () => Math.round((performance.now() - started) * 10) / 10;
    try {
      sent.request = await prepare(++lastId, method, params, profile, tool);
      onRequest?.(sent.request);
      Object.assign(sent, await post(sent.request, signal));
    } catch (error) {
      return { ...sent, durationMs: elapsed(), error: unreachable(error) };
    }
    return { ...sent, durationMs: elapsed(), error: errorIn(sent.response) };
  }

  async function prepare(id, method, params, profile, tool) {
    const url = store.state.application?.mcpUrl ?? "/mcp";
    const accept = "application/json, text/event-stream";
    const headers = { "content-type": "application/json", accept, ...(await authorization(profile)) };
    if (isLegacy(profile)) return prepareLegacy({ id, url, method, params, profile, headers, send: post });
    const mirrored = { ...nameHeader(method, params), ...parameterHeaders(tool?.inputSchema, params.arguments) };
    const meta = { ...metaOf(profile), "io.modelcontextprotocol/logLevel": "debug", progressToken: id };
    return {
      url,
      headers: { ...headers, "mcp-protocol-version": profile.protocolVersion, "mcp-method": method, ...mirrored },
      body: { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } },
    };
  }

  /** Send a prepared request and read its response. */
  async function post(request, signal) {
    // The page may send requests to its own origin only, which passes them to the endpoint's port.
    const response = await fetch(new URL(request.url, location.href).pathname, {
      method: "POST", signal, credentials: "omit", body: JSON.stringify(request.body),
      // The runner drops this header with Origin: the console plays a client that is no browser.
      headers: { ...request.headers, "x-console": "1" },
    });
    if (response.status === 401) forgetTokens();
    const headers = Object.fromEntries(response.headers);
    const read = readBody(headers["content-type"] ?? "", await response.text(), request.body.id);
    return { exchangeId: headers["apigw-requestid"] ?? null, response: { status: response.status, headers, ...read } };
  }

  /** Send a request and return its result. Throws McpError. */
  async function request(method, params = {}, options = {}) {
    const { response, error } = await exchange(method, params, options);
    if (error) throw new McpError(error);
    return response.body.result;
  }

  /** Return what the server says of itself: `capabilities`, `serverInfo`, `instructions`. Throws McpError. */
  async function discover() {
    const { profile } = store.state;
    if (!isLegacy(profile)) return request("server/discover", {}, { profile });
    await request("ping", {}, { profile }); // opens a session if there is none: the response to initialize says it
    return sessionOf(profile);
  }

  return { exchange, request, discover };
}

function unreachable(error) {
  if (error.name === "AbortError") return { message: "The request was stopped." };
  const message = error instanceof TypeError ? "The server does not answer. Is make run still running?" : error.message;
  return { message, status: error.status };
}

function errorIn({ status, headers, body }) {
  const error = body?.error;
  if (error) return { code: error.code, message: error.message ?? "", data: error.data, status };
  if (body?.result !== undefined) return undefined;
  const challenge = headers["www-authenticate"];
  return { message: body?.message ?? (challenge ? `HTTP ${status}: ${challenge}` : `HTTP ${status}`), status };
}
