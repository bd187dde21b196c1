// The page of the client that the console plays: protocol version, capabilities, name, user and scopes.

import { announce, fill, h } from "../dom.js";
import { loadFeatures } from "../features.js";
import { makeForm } from "../form.js";
import { CAPABILITIES, VERSIONS, capabilitiesOf, declaredIn } from "../mcp/profile.js";

/** Return the page. Each change counts for the next call, and loads the lists again: they can depend on the client. */
export function clientPage(context) {
  const { store } = context;
  const place = h("div.card.call-form");
  const problem = h("p.error", { role: "status" });

  async function change(changes) {
    const profile = { ...store.state.profile, ...changes };
    store.update({ profile });
    await loadFeatures(context);
    fill(problem, store.state.featuresError);
    announce("The client was changed.");
  }

  function showForm() {
    const { profile, application } = store.state;
    const labelOf = (name, { title }) => [title, ""];
    const form = makeForm(schemaOf(profile, application), { values: valuesOf(profile), labelOf });
    form.node.addEventListener("change", () => {
      const { user } = store.state.profile;
      const changed = profileOf(form.read());
      change({ ...changed, ...(changed.user !== user && { scopes: null }) });
      if (changed.user !== user) showForm(); // with the scopes of this user
    });
    fill(place, form.node);
  }

  showForm();
  return h("article.client",
    h("header.page-head",
      h("h1", { tabindex: -1 }, "Client"),
      h("p.description", "The client that this console plays. A call keeps the client with which it started.")),
    problem, place);
}

/** Return the schema of the form: the user and the scopes are there if the run has users. */
function schemaOf({ user }, application) {
  const { users = [], scopes = [] } = application ?? {};
  const own = users.find(({ name }) => name === user)?.scopes ?? [];
  const known = [...new Set([...own, ...scopes])];
  const options = (listed) => listed.map(([value, title]) => ({ const: value, title }));
  const properties = {
    version: {
      title: "Protocol version", oneOf: options(VERSIONS),
      description: "Clients of the earlier versions cannot be asked in a response: their questions take other ways.",
    },
    capabilities: {
      type: "array", title: "Capabilities", description: "What the client declares in each request.",
      items: { oneOf: options(CAPABILITIES.map(([name, , meaning]) => [name, `${name}: ${meaning}`])) },
    },
    name: {
      type: "string", title: "Name",
      description: "For display and logs. The server knows faults of some released clients by their names.",
    },
    clientVersion: { type: "string", title: "Version of the client" },
    user: {
      title: "User", oneOf: options([...users.map(({ name }) => [name, name]), ["", "no token"]]),
      description: users.length > 0 ? "A token of the local issuer goes with each request."
        : 'Every caller is anonymous. make run USER="ada bob" SCOPES="weather:read" starts a local issuer with users.',
    },
    scopes: {
      type: "array", title: "Scopes of the token", items: { enum: known }, default: own,
      description: "A token can have fewer scopes than its user, and others, so that a refusal can be seen.",
    },
  };
  if (user === null || known.length === 0) delete properties.scopes;
  return { properties, required: Object.keys(properties).filter((name) => properties[name].type !== "string") };
}

function valuesOf({ protocolVersion, capabilities, clientInfo, user, scopes }) {
  const values = { version: protocolVersion, capabilities: declaredIn(capabilities), user: user ?? "" };
  return { ...values, name: clientInfo.name, clientVersion: clientInfo.version, ...(scopes && { scopes }) };
}

function profileOf({ version, capabilities, name = "", clientVersion = "", user, scopes = null }) {
  const clientInfo = { name, version: clientVersion };
  return { protocolVersion: version, capabilities: capabilitiesOf(capabilities), clientInfo, user: user || null, scopes };
}
