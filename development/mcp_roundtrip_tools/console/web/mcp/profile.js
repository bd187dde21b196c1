// The client that the console plays: its protocol version, what it declares, and its user.

import { api } from "../api.js";

const TASKS = "io.modelcontextprotocol/tasks";

/** The protocol versions, each with its title. */
export const VERSIONS = [
  ["2026-07-28", "2026-07-28"],
  ["2025-11-25", "2025-11-25, opens with initialize"],
  ["2025-06-18", "2025-06-18, opens with initialize"],
];

/** What a client can declare: its name, the path in the ClientCapabilities, and what it means. */
export const CAPABILITIES = [
  ["Forms", ["elicitation", "form"], "the client shows questions as forms (elicitation.form)"],
  ["Pages", ["elicitation", "url"], "the client opens a page for its user (elicitation.url)"],
  ["Sampling", ["sampling"], "the client has a model that answers; here, you write its text"],
  ["Sampling with tools", ["sampling", "tools"], "the model may call tools of the request"],
  ["Sampling with context", ["sampling", "context"], "the model may see context of this server"],
  ["Roots", ["roots"], "the client lists its folders; here, you write the list"],
  ["Tasks", ["extensions", TASKS], "the client polls calls that become tasks"],
];

/** Return the capabilities with these names, as a client declares them. */
export function capabilitiesOf(names) {
  const declared = {};
  for (const [, path] of CAPABILITIES.filter(([name]) => names.includes(name)))
    path.reduce((node, member) => (node[member] ??= {}), declared);
  return declared;
}

/** Return the names of the capabilities that a client declares. */
export function declaredIn(capabilities) {
  const isDeclared = (path) => path.reduce((node, member) => node?.[member], capabilities) !== undefined;
  return CAPABILITIES.filter(([, path]) => isDeclared(path)).map(([name]) => name);
}

/**
 * Return a client of the newest version that supports everything. `user` is a user of the local issuer, or null for an
 * anonymous caller; `scopes` are those of the user's token, or null for all that the user has.
 */
export function defaultProfile() {
  return {
    protocolVersion: VERSIONS[0][0], capabilities: capabilitiesOf(CAPABILITIES.map(([name]) => name)),
    clientInfo: { name: "mcp-roundtrip-console", version: "1" }, user: null, scopes: null,
  };
}

/** Whether the client speaks a version that opens with `initialize`. */
export const isLegacy = ({ protocolVersion }) => protocolVersion !== VERSIONS[0][0];

/** Return the members of `_meta` that introduce the client in each request. */
export function metaOf({ protocolVersion, clientInfo, capabilities: clientCapabilities }) {
  const members = Object.entries({ protocolVersion, clientInfo, clientCapabilities });
  return Object.fromEntries(members.map(([name, value]) => [`io.modelcontextprotocol/${name}`, value]));
}

const TOKEN_LIFE_MS = 60_000;
const tokens = new Map();

/** Forget all tokens: the server refused one, as after a restart with other keys. */
export const forgetTokens = () => tokens.clear();

/** Return the Authorization header of the profile's user; `{}` for an anonymous caller. Throws ApiError. */
export async function authorization({ user, scopes }) {
  if (user === null) return {};
  const key = JSON.stringify([user, scopes]);
  const known = tokens.get(key);
  if (known !== undefined && known.until > Date.now()) return { authorization: `Bearer ${known.token}` };
  const { token } = await api.token(user, scopes);
  tokens.set(key, { token, until: Date.now() + TOKEN_LIFE_MS });
  return { authorization: `Bearer ${token}` };
}

/** Return the client in a few words: `2026-07-28 · forms, pages, tasks · ada`. */
export function summary({ protocolVersion, capabilities, user }) {
  const names = declaredIn(capabilities).filter((name) => !name.startsWith("Sampling with"));
  const declared = names.join(", ").toLowerCase() || "declares nothing";
  return [protocolVersion, declared, ...(user ? [user] : [])].join(" · ");
}

/** Return the profile with the first user of the local issuer, if there are users. */
export function withUser(profile, application) {
  const [first] = application?.users ?? [];
  return first === undefined ? profile : { ...profile, user: first.name };
}
