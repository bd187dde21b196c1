// Clients of 2025-11-25 and 2025-06-18: they open with `initialize` and repeat the session id of its response.

export { isLegacy } from "./profile.js";

const ACCEPT = { accept: "application/json, text/event-stream", "content-type": "application/json" };

/**
 * @typedef {object} Session
 * @property {string} protocolVersion the version that the server chose
 * @property {string | null} id
 * @property {object} capabilities of the server
 * @property {object} serverInfo
 * @property {string} [instructions]
 */

/** Return the InitializeRequest of a client. */
export function initializeRequest({ protocolVersion, capabilities, clientInfo }, id) {
  const params = { protocolVersion, capabilities, clientInfo };
  return { headers: { ...ACCEPT }, body: { jsonrpc: "2.0", id, method: "initialize", params } };
}

/**
 * Return the session that a response to `initialize` opens. Throws an Error with the server's message.
 * @param {Object<string, string>} headers by lower-case name
 * @param {object} body the JSON-RPC response
 * @returns {Session}
 */
export function readSession(headers, body) {
  if (body?.result === undefined) throw new Error(body?.error?.message ?? "The server did not answer initialize.");
  const { protocolVersion, capabilities, serverInfo, instructions } = body.result;
  return { protocolVersion, id: headers["mcp-session-id"] ?? null, capabilities, serverInfo, instructions };
}

/** Return the headers that every later request of the session repeats. */
export function sessionHeaders({ protocolVersion, id }) {
  return { ...ACCEPT, "mcp-protocol-version": protocolVersion, ...(id === null ? {} : { "mcp-session-id": id }) };
}

/** Return the notification that follows `initialize`. */
export function initializedNotification(session) {
  return { headers: sessionHeaders(session), body: { jsonrpc: "2.0", method: "notifications/initialized" } };
}

/** Return a request of the session. The id is also its progress token. */
export function legacyRequest(session, method, params, id) {
  const { _meta: meta = {}, ...others } = params;
  const sent = { ...others, _meta: { ...meta, progressToken: id } };
  return { headers: sessionHeaders(session), body: { jsonrpc: "2.0", id, method, params: sent } };
}

/** Return what must be equal for two profiles to share a session. */
export function sessionKey({ protocolVersion, capabilities, clientInfo, user, scopes }) {
  return JSON.stringify([protocolVersion, capabilities, clientInfo, user, scopes]);
}

const sessions = new Map();

/**
 * Return a request of a client of these versions. The first request of a profile opens a session.
 * @param {{id: number, url: string, method: string, params: object, profile: object, headers: object, send: function}} options
 *     `headers` are added to each request, such as Authorization; `send` posts a request and returns `{response}`
 */
export async function prepareLegacy({ id, url, method, params, profile, headers, send }) {
  const key = sessionKey(profile);
  if (!sessions.has(key)) sessions.set(key, openSession({ url, profile, headers, send }));
  try {
    const request = legacyRequest(await sessions.get(key), method, params, id);
    return { url, headers: { ...headers, ...request.headers }, body: request.body };
  } catch (error) {
    sessions.delete(key); // the next request tries again
    throw error;
  }
}

/** Return the session of a profile after its first request. */
export const sessionOf = (profile) => sessions.get(sessionKey(profile));

async function openSession({ url, profile, headers, send }) {
  const post = (request) => send({ url, headers: { ...headers, ...request.headers }, body: request.body });
  const { response } = await post(initializeRequest(profile, "initialize"));
  const session = readSession(response.headers, response.body);
  await post(initializedNotification(session));
  return session;
}
