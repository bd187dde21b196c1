// Loads what the server offers: discovery, and all pages of its lists.

const LISTS = [
  { group: "tools", method: "tools/list", member: "tools", capability: "tools" },
  { group: "prompts", method: "prompts/list", member: "prompts", capability: "prompts" },
  { group: "resources", method: "resources/list", member: "resources", capability: "resources" },
  { group: "templates", method: "resources/templates/list", member: "resourceTemplates", capability: "resources" },
];

const SERVER_INFO = "io.modelcontextprotocol/serverInfo";
const MAX_PAGES = 100;

let latestTurn = 0;

/** Load discovery and lists into the store, unless it is loaded again meanwhile. Problems become `featuresError`. */
export async function loadFeatures({ store, client }) {
  const turn = ++latestTurn;
  const update = (changes) => turn === latestTurn && store.update(changes);
  try {
    const { capabilities = {}, instructions = null, serverInfo, _meta } = await client.discover();
    const features = { tools: [], prompts: [], resources: [], templates: [] };
    for (const list of LISTS.filter((each) => each.capability in capabilities))
      features[list.group] = await loadList(client, list); // one after another: they share an execution environment
    const found = { serverCapabilities: capabilities, serverInfo: serverInfo ?? _meta?.[SERVER_INFO] ?? null, instructions };
    update({ ...found, featuresError: null, features });
  } catch (error) {
    update({ featuresError: error.message, features: store.state.features });
  }
}

async function loadList(client, { method, member }) {
  const entries = [];
  let cursor;
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await client.request(method, cursor === undefined ? {} : { cursor });
    entries.push(...(result[member] ?? []));
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return entries;
}
