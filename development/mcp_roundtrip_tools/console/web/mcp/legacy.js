// Clients of 2025-11-25 and 2025-06-18: they open with `initialize` and repeat the session id of its response.

const sessions = new Map();

/** What must be equal for two profiles to share a session. */
const keyOf = ({ protocolVersion, capabilities, clientInfo, user, scopes }) =>
  JSON.stringify([protocolVersion, capabilities, clientInfo, user, scopes]);

/** Return what the server said of itself, after the first request of a profile. */
export const sessionOf = (profile) => sessions.get(keyOf(profile));

/**
 * Return a request of a client of these versions. The first request of a profile opens a session.
 * `headers` are those of each request; `send` posts a request and returns `{response}`.
 */
export async function prepareLegacy({ id, url, method, params, profile, headers, send }) {
  const key = keyOf(profile);
  if (!sessions.has(key)) sessions.set(key, openSession({ url, profile, headers, send }));
  try {
    const session = await sessions.get(key);
    const sent = { ...params, _meta: { ...params._meta, progressToken: id } };
    return { url, headers: { ...headers, ...session.headers }, body: { jsonrpc: "2.0", id, method, params: sent } };
  } catch (error) {
    sessions.delete(key); // the next request tries again
    throw error;
  }
}

/** Return the server's part of the response to `initialize`, with the headers that every later request repeats. */
async function openSession({ url, profile: { protocolVersion, capabilities, clientInfo }, headers, send }) {
  const params = { protocolVersion, capabilities, clientInfo };
  const opening = { jsonrpc: "2.0", id: "initialize", method: "initialize", params };
  const { response } = await send({ url, headers, body: opening });
  const { result, error } = response.body ?? {};
  if (result === undefined) throw new Error(error?.message ?? "The server did not answer initialize.");
  const id = response.headers["mcp-session-id"];
  const repeated = { "mcp-protocol-version": result.protocolVersion, ...(id && { "mcp-session-id": id }) };
  const body = { jsonrpc: "2.0", method: "notifications/initialized" };
  await send({ url, headers: { ...headers, ...repeated }, body });
  return { ...result, headers: repeated };
}
