// The page of a tool, a prompt, a resource or a resource template: what it is, its form, and its calls.

import { element, fill, icon } from "../dom.js";
import { expand, variablesOf } from "../mcp/uri_template.js";
import { argumentsEditor } from "./form.js";
import { callView } from "./call.js";
import { jsonView } from "./json_view.js";

const KINDS = {
  tools: { title: "Tool", find: (entry, id) => entry.name === id, verb: "Call", start: startTool },
  prompts: { title: "Prompt", find: (entry, id) => entry.name === id, verb: "Get the prompt", start: startPrompt },
  resources: { title: "Resource", find: (entry, id) => entry.uri === id, verb: "Read", start: startResource },
  templates: { title: "Resource template", find: (entry, id) => entry.uriTemplate === id, verb: "Read", start: startTemplate },
};

/**
 * Return the page of a feature, which follows its definition: an edited version of the function can change it.
 * `group` is a key of `store.state.features`.
 */
export function featurePage(context, group, id, signal) {
  const kind = KINDS[group];
  const { store } = context;
  const [head, form] = [element("div", {}), element("div", {})];
  const calls = element("div", { class: "calls" });
  let shown = null;
  let editor = null;

  function update() {
    const feature = findFeature(store, group, id);
    const definition = JSON.stringify(feature);
    if (definition === shown) return;
    shown = definition;
    if (feature === null) fill(head, missing(kind, id, store));
    else showFeature(feature);
  }

  function showFeature(feature) {
    fill(head, header(kind, group, feature, store, signal));
    editor = argumentsEditor(schemaOf(group, feature), {
      values: latestArguments(store, group, feature), completions: completions(context, group, feature), draft: editor?.draft(),
    });
    const start = (event) => {
      event.preventDefault();
      const given = editor.read();
      if (given !== null) show(kind.start(context, feature, given), true);
    };
    fill(form, element("form", { class: "card call-form", novalidate: true, onsubmit: start },
      editor.node,
      element("div", { class: "actions" },
        element("button", { type: "submit", class: "primary" }, kind.verb),
        hasArguments(group, feature) && editor.toggle)));
  }

  function show(call, isOpen) {
    for (const older of calls.querySelectorAll(":scope > details")) older.open = false;
    calls.prepend(callView(context, call, signal, isOpen));
  }

  store.subscribe("features", update, signal);
  update();
  const own = store.state.calls.filter((call) => isCallOf(call, group, id));
  own.forEach((call, index) => show(call, index === own.length - 1));
  return element("article", { class: "feature" }, head, form, calls);
}

/** Return the definition of a feature; null if it is not listed. */
function findFeature(store, group, id) {
  const listed = store.state.features[group]?.find((entry) => KINDS[group].find(entry, id));
  // A result may link a resource that no list has.
  return listed ?? (group === "resources" ? { uri: id, name: id } : null);
}

function header(kind, group, feature, store, signal) {
  const isNamed = group === "tools" || group === "prompts";
  const uri = feature.uri ?? feature.uriTemplate;
  const name = isNamed ? feature.name : feature.title ?? feature.name ?? uri;
  const { owners = {}, defaultOwner } = store.state.application ?? {};
  const owner = owners[uri ?? feature.name] ?? defaultOwner;
  const source = store.state.application?.functions?.find((each) => each.name === owner)?.file;
  return element("header", { class: "page-head" },
    element("p", { class: "eyebrow" }, kind.title,
      owner && [" of the function ", element("code", {}, owner)], source && [" in ", element("code", {}, source)]),
    element("h1", { tabindex: -1, dir: "auto" }, name,
      feature.title && name !== feature.title && element("span", { class: "subtitle" }, feature.title)),
    uri && element("p", {}, element("code", {}, uri)),
    feature.description && element("p", { class: "description prose", dir: "auto" }, feature.description),
    element("div", { class: "chips" },
      facts(feature).map((fact) => element("span", { class: "chip" }, fact)), owner && editedChip(store, owner, signal)),
    element("details", { class: "definition" }, element("summary", {}, "Definition"), definition(feature)));
}

/** Say while an edited version of the function runs: its files in the project are others. */
function editedChip(store, owner, signal) {
  const chip = element("span", { class: "chip experiment" }, "an edited version runs");
  const update = () => { chip.hidden = !store.state.application?.functions?.find((each) => each.name === owner)?.isEdited; };
  store.subscribe("application", update, signal);
  update();
  return chip;
}

/** A definition can be long: it is formatted when it is opened. */
function definition(feature) {
  const place = element("div", {});
  queueMicrotask(() => place.closest("details").addEventListener("toggle", () => {
    if (!place.hasChildNodes()) fill(place, jsonView(feature, { label: "definition" }));
  }));
  return place;
}

function facts(feature) {
  const annotations = feature.annotations ?? {};
  return [
    feature.execution?.taskSupport && feature.execution.taskSupport !== "forbidden" && `task: ${feature.execution.taskSupport}`,
    annotations.readOnlyHint && "reads only",
    annotations.destructiveHint && "may destroy",
    annotations.idempotentHint && "idempotent",
    feature.mimeType,
  ].filter(Boolean);
}

function missing(kind, id, store) {
  const isLoading = store.state.featuresError === null && !store.state.areFeaturesLoaded;
  if (isLoading) return element("p", { class: "hint" }, "Loading…");
  return element("div", {},
    element("h1", { tabindex: -1 }, `No such ${kind.title.toLowerCase()}`),
    element("p", {}, element("code", {}, id), " is not in the list of the server."));
}

// -- arguments ----------------------------------------------------------------------------------------------------------

/** Prompts and templates have arguments of text, which tools describe by a schema. */
function schemaOf(group, feature) {
  if (group === "tools") return feature.inputSchema ?? { type: "object" };
  if (group === "prompts") {
    const listed = feature.arguments ?? [];
    const properties = listed.map(({ name, title, description }) => [name, { type: "string", title, description }]);
    const required = listed.filter((each) => each.required).map((each) => each.name);
    return { type: "object", properties: Object.fromEntries(properties), required };
  }
  const names = group === "templates" ? variablesOf(feature.uriTemplate) : [];
  return { type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: names };
}

const hasArguments = (group, feature) => Object.keys(schemaOf(group, feature).properties ?? {}).length > 0;

function completions({ store, client }, group, feature) {
  if (!store.state.serverCapabilities?.completions) return {};
  const ref = {
    prompts: { type: "ref/prompt", name: feature.name },
    templates: { type: "ref/resource", uri: feature.uriTemplate },
  }[group];
  if (ref === undefined) return {};
  const complete = (name) => async (value, others) => {
    const { [name]: own, ...context } = others;
    const given = Object.keys(context).length > 0 ? { context: { arguments: context } } : {};
    const { completion } = await client.request("completion/complete", { ref, argument: { name, value }, ...given });
    return completion.values;
  };
  return Object.fromEntries(Object.keys(schemaOf(group, feature).properties).map((name) => [name, complete(name)]));
}

function latestArguments(store, group, feature) {
  const id = feature.uriTemplate ?? feature.uri ?? feature.name;
  const latest = store.state.calls.findLast((call) => isCallOf(call, group, id));
  return latest?.values ?? latest?.arguments ?? {};
}

function isCallOf(call, group, id) {
  if (group === "templates") return call.feature?.uriTemplate === id;
  return call.kind === group.slice(0, -1) && call.name === id;
}

function startTool({ calls }, feature, given) {
  return calls.start({ kind: "tool", name: feature.name, feature, arguments: given });
}

function startPrompt({ calls }, feature, given) {
  return calls.start({ kind: "prompt", name: feature.name, feature, arguments: given });
}

function startResource({ calls }, feature) {
  return calls.start({ kind: "resource", name: feature.uri, feature });
}

function startTemplate({ calls }, feature, given) {
  return calls.start({ kind: "resource", name: expand(feature.uriTemplate, given), feature, values: given });
}
