// The client that the console plays: its protocol version, what it declares, and its user.

/**
 * @typedef {object} Profile
 * @property {string} protocolVersion
 * @property {object} capabilities the ClientCapabilities
 * @property {{name: string, version: string}} clientInfo
 * @property {string | null} user a user of the local issuer; null for an anonymous caller
 * @property {string[] | null} scopes the scopes of the user's token; null for all that the user has
 */

export const PROTOCOL_VERSION = "2026-07-28";
export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18"];

const TASKS = "io.modelcontextprotocol/tasks";

/** What a client can declare, in the order of the page. */
export const CAPABILITIES = [
  { path: ["elicitation", "form"], label: "Forms", help: "The client shows questions as forms (elicitation.form)." },
  { path: ["elicitation", "url"], label: "Pages", help: "The client opens a page for its user (elicitation.url)." },
  { path: ["sampling"], label: "Sampling", help: "The client has a model that answers. Here, you write its text." },
  { path: ["sampling", "tools"], label: "Sampling with tools", help: "The model may call tools of the request." },
  { path: ["sampling", "context"], label: "Sampling with context", help: "The model may see context of this server." },
  { path: ["roots"], label: "Roots", help: "The client lists its folders. Here, you write the list." },
  { path: ["extensions", TASKS], label: "Tasks", help: "The client polls calls that become tasks." },
];

/** Return a client of the newest version that supports everything. */
export function defaultProfile() {
  return {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: {
      elicitation: { form: {}, url: {} },
      sampling: { tools: {}, context: {} },
      roots: {},
      extensions: { [TASKS]: {} },
    },
    clientInfo: { name: "mcp-roundtrip-console", version: "1" },
    user: null,
    scopes: null,
  };
}

/** Clients to choose from. Each function changes what the client declares. */
export const PRESETS = [
  { name: "Everything", capabilities: defaultProfile().capabilities },
  { name: "Forms only", capabilities: { elicitation: { form: {} } } },
  { name: "Forms and tasks", capabilities: { elicitation: { form: {} }, extensions: { [TASKS]: {} } } },
  { name: "Nothing", capabilities: {} },
];

/** Whether the client speaks a version that opens with `initialize`. */
export const isLegacy = (profile) => LEGACY_VERSIONS.includes(profile.protocolVersion);

const TOKEN_LIFE_MS = 60_000;
const tokens = new Map();

/** Forget all tokens: the server refused one, as after a restart with other keys. */
export const forgetTokens = () => tokens.clear();

/** Return the Authorization header of the profile's user; `{}` for an anonymous caller. Throws ApiError. */
export async function authorization({ user, scopes }, clock = Date.now) {
  if (user === null) return {};
  const key = JSON.stringify([user, scopes]);
  const known = tokens.get(key);
  if (known !== undefined && known.until > clock()) return { authorization: `Bearer ${known.token}` };
  const { api } = await import("../api.js");
  const { token } = await api.token(user, scopes);
  tokens.set(key, { token, until: clock() + TOKEN_LIFE_MS });
  return { authorization: `Bearer ${token}` };
}

/** Whether capabilities contain this path. `elicitation: {}` means forms. */
export function declares(capabilities, path) {
  let node = capabilities;
  for (const name of path) {
    if (name === "form" && node !== undefined && Object.keys(node).length === 0) return true;
    node = node?.[name];
  }
  return node !== undefined;
}

/** Return the capabilities with or without this path. A capability whose last member is removed is removed, too. */
export function declare(capabilities, [name, ...rest], isDeclared) {
  const { [name]: inner, ...others } = capabilities;
  if (rest.length === 0) return isDeclared ? { ...capabilities, [name]: inner ?? {} } : others;
  const members = name === "elicitation" && inner && Object.keys(inner).length === 0 ? { form: {} } : (inner ?? {});
  const changed = declare(members, rest, isDeclared);
  const isEmpty = Object.keys(changed).length === 0 && name !== "sampling"; // sampling means something without members
  return isEmpty ? others : { ...capabilities, [name]: changed };
}

/** Return the client in a few words: `2026-07-28 · forms, pages, tasks · ada`. */
export function summary(profile) {
  const labels = CAPABILITIES.filter(({ path }) => path.length < 2 || path[0] !== "sampling")
    .filter(({ path }) => declares(profile.capabilities, path))
    .map(({ label }) => label.toLowerCase());
  const parts = [profile.protocolVersion, labels.join(", ") || "declares nothing"];
  return [...parts, ...(profile.user ? [profile.user] : [])].join(" · ");
}

/** Return the problem of a ClientCapabilities object that a user typed; "" if there is none. */
export function capabilitiesProblem(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? "" : "This must be a JSON object.";
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
}

/** Return the profile with the first user of the local issuer, if there are users. */
export function withUser(profile, application) {
  const [first] = application?.users ?? [];
  return first === undefined ? profile : { ...profile, user: first.name };
}

const STORED = "mcp-roundtrip-console-profile";

/** Return the client of the last visit without its user, because users belong to one run of the server. */
export function loadProfile(storage) {
  try {
    const stored = JSON.parse((storage ?? localStorage).getItem(STORED) ?? "{}");
    return { ...defaultProfile(), ...stored, user: null, scopes: null };
  } catch {
    return defaultProfile();
  }
}

/** Store the client for the next visit. */
export function saveProfile({ protocolVersion, capabilities, clientInfo }, storage = localStorage) {
  storage.setItem(STORED, JSON.stringify({ protocolVersion, capabilities, clientInfo }));
}
