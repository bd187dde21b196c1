// The page of the client that the console plays: protocol version, capabilities, name, user and scopes.

import { announce, element, fill, radioOption, rebuild, uniqueId } from "../dom.js";
import { loadFeatures } from "../features.js";
import { group, userGroup } from "./client_user.js";
import { jsonView } from "./json_view.js";
import {
  CAPABILITIES,
  LEGACY_VERSIONS,
  PRESETS,
  PROTOCOL_VERSION,
  capabilitiesProblem,
  declare,
  declares,
  isLegacy,
  saveProfile,
} from "../mcp/profile.js";

/** Return the page. Each change counts for the next call, and loads the lists again: they can depend on the client. */
export function clientPage(context, signal) {
  const place = element("div", { class: "client-sections" });
  const problem = element("p", { class: "error", role: "status" });

  async function change(changes) {
    const profile = { ...context.store.state.profile, ...changes };
    context.store.update({ profile });
    saveProfile(profile);
    await loadFeatures(context);
    fill(problem, context.store.state.featuresError);
    announce("The client was changed.");
  }

  function render() {
    const { profile, application } = context.store.state;
    rebuild(
      place,
      version(profile, change),
      capabilities(profile, change),
      name(profile, change),
      userGroup(profile, application, change),
      messages(profile),
    );
  }

  context.store.subscribe("profile", render, signal);
  render();
  return element(
    "article",
    { class: "client" },
    element(
      "header",
      { class: "page-head" },
      element("h1", { tabindex: -1 }, "Client"),
      element(
        "p",
        { class: "description" },
        "The client that this console plays. Calls that were started keep the client with which they started.",
      ),
    ),
    problem,
    place,
  );
}

function version(profile, change) {
  const name = uniqueId("version");
  const choose = (each) =>
    radioOption(
      name,
      each,
      profile.protocolVersion === each,
      () => change({ protocolVersion: each }),
      each,
      each === PROTOCOL_VERSION ? "" : ", opens with initialize",
    );
  return group(
    "Protocol version",
    "Clients of the earlier versions cannot be asked in a response: their questions take other ways.",
    element(
      "div",
      { class: "choices", role: "radiogroup", "aria-label": "Protocol version" },
      [PROTOCOL_VERSION, ...LEGACY_VERSIONS].map(choose),
    ),
  );
}

function capabilities({ capabilities: declared }, change) {
  const box = ({ path, label, help }) => {
    const id = uniqueId("help");
    const input = element("input", {
      type: "checkbox",
      dataset: { control: path.join(".") },
      checked: declares(declared, path),
      "aria-describedby": id,
      onchange: () => change({ capabilities: declare(declared, path, input.checked) }),
    });
    return element(
      "div",
      { class: path.length > 1 && path[0] === "sampling" ? "capability inner" : "capability" },
      element("label", { class: "option" }, input, label),
      element("span", { class: "hint", id }, help),
    );
  };
  return group(
    "Capabilities",
    "What the client declares in each request.",
    element(
      "div",
      { class: "actions" },
      PRESETS.map((preset) =>
        element(
          "button",
          {
            type: "button",
            class: "quiet",
            dataset: { control: `preset ${preset.name}` },
            "aria-pressed": String(sameJson(preset.capabilities, declared)),
            onclick: () => change({ capabilities: preset.capabilities }),
          },
          preset.name,
        ),
      ),
    ),
    CAPABILITIES.map(box),
    capabilitiesText(declared, change),
  );
}

/** An editor of the whole object, also for capabilities that this page does not list. */
function capabilitiesText(declared, change) {
  const [id, errorId] = [uniqueId("capabilities"), uniqueId("error")];
  const error = element("p", { class: "error", id: errorId });
  const text = element("textarea", {
    id,
    class: "input code growing",
    rows: 4,
    spellcheck: "false",
    "aria-describedby": errorId,
    value: JSON.stringify(declared, null, 2),
    onchange: () => {
      const problem = capabilitiesProblem(text.value);
      fill(error, problem);
      if (problem === "") change({ capabilities: JSON.parse(text.value) });
    },
  });
  return element(
    "details",
    {},
    element("summary", {}, "As JSON"),
    element(
      "div",
      { class: "field" },
      element("label", { for: id, class: "visually-hidden" }, "Capabilities as JSON"),
      text,
      error,
    ),
  );
}

function name({ clientInfo }, change) {
  const field = (member, label) => {
    const id = uniqueId(member);
    const input = element("input", {
      id,
      class: "input",
      type: "text",
      value: clientInfo[member] ?? "",
      spellcheck: "false",
      dataset: { control: `client ${member}` },
      onchange: () => change({ clientInfo: { ...clientInfo, [member]: input.value } }),
    });
    return element(
      "div",
      { class: "field" },
      element("label", { for: id }, element("span", { class: "label-name" }, label)),
      input,
    );
  };
  return group(
    "Name",
    "For display and logs. The server knows faults of some released clients by their names.",
    element("div", { class: "client-name" }, field("name", "Name"), field("version", "Version")),
  );
}

/** What the client sends to introduce itself. */
function messages({ protocolVersion, clientInfo, capabilities: declared }) {
  const profile = { protocolVersion, clientInfo, capabilities: declared };
  const sent = isLegacy(profile)
    ? { method: "initialize", params: profile }
    : {
        _meta: Object.fromEntries(
          Object.entries({ protocolVersion, clientInfo, clientCapabilities: declared }).map(([name, value]) => [
            `io.modelcontextprotocol/${name}`,
            value,
          ]),
        ),
      };
  return element(
    "details",
    { class: "definition" },
    element("summary", {}, isLegacy(profile) ? "The first request of this client" : "The _meta of each request of this client"),
    jsonView(sent, { label: "message" }),
  );
}

const sameJson = (one, other) => JSON.stringify(one) === JSON.stringify(other);
