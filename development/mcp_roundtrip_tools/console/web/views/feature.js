// The page of a tool, a prompt, a resource or a resource template: what it is, its form, and its calls.

import { fill, h, lazyDetails, rebuild } from "../dom.js";
import { parseJson } from "../format.js";
import { expand, variablesOf } from "../mcp/uri_template.js";
import { argumentsEditor } from "./arguments.js";
import { callView } from "./call.js";
import { jsonView } from "./json_view.js";

/** Group of the lists -> what one is called, what calls it, its id, its schema, and the start of a call. */
const KINDS = {
  tools: {
    title: "Tool", verb: "Call", idOf: ({ name }) => name, schemaOf: ({ inputSchema }) => inputSchema ?? { type: "object" },
    callOf: ({ name }, given) => ({ kind: "tool", name, arguments: given }),
  },
  prompts: {
    title: "Prompt", verb: "Get the prompt", idOf: ({ name }) => name,
    schemaOf: ({ arguments: listed = [] }) => textsSchema(listed),
    callOf: ({ name }, given) => ({ kind: "prompt", name, arguments: given }),
    refOf: ({ name }) => ({ type: "ref/prompt", name }),
  },
  resources: {
    title: "Resource", verb: "Read", idOf: ({ uri }) => uri, schemaOf: () => textsSchema([]),
    callOf: ({ uri }) => ({ kind: "resource", name: uri }),
  },
  templates: {
    title: "Resource template", verb: "Read", idOf: ({ uriTemplate }) => uriTemplate,
    schemaOf: ({ uriTemplate }) => textsSchema(variablesOf(uriTemplate)),
    callOf: ({ uriTemplate }, given) => ({ kind: "resource", name: expand(uriTemplate, given), values: given }),
    refOf: ({ uriTemplate: uri }) => ({ type: "ref/resource", uri }),
  },
};

/** Prompts and templates have arguments of text, which tools describe by a schema. */
function textsSchema(listed) {
  const property = ({ name, description, title }) => [name, { type: "string", title, description }];
  const required = listed.filter((each) => each.required).map(({ name }) => name);
  return { type: "object", properties: Object.fromEntries(listed.map(property)), required };
}

/**
 * Return the page of a feature, which follows its definition.
 * `group` is a key of `store.state.features`. The address may have arguments: `#/tools/get_weather?{"location":"Tokyo"}`.
 */
export function featurePage(context, group, id, signal) {
  const kind = KINDS[group];
  const { store } = context;
  const [head, form, calls] = [h("div"), h("div"), h("div.calls")];
  const own = store.state.calls.filter((call) => isCallOf(call, group, id));
  const given = parseJson(decodeURIComponent(location.hash.split("?")[1] ?? ""));
  let shown = null;
  let editor = null;

  function update() {
    // A result may link a resource that no list has.
    const unlisted = group === "resources" ? { uri: id, name: id } : null;
    const feature = store.state.features[group].find((entry) => kind.idOf(entry) === id) ?? unlisted;
    const definition = JSON.stringify(feature);
    if (definition === shown) return;
    shown = definition;
    if (feature !== null) showFeature(feature);
    else {
      const title = h("h1", { tabindex: -1 }, `No such ${kind.title.toLowerCase()}`);
      fill(head, title, h("p", h("code", id), " is not in the list of the server."));
    }
  }

  function showFeature(feature) {
    fill(head, header(feature, kind, store));
    const schema = kind.schemaOf(feature);
    editor = argumentsEditor(schema, {
      values: editor?.values() ?? given ?? own.at(-1)?.values, completions: completions(context, kind, feature, schema),
    });
    const onsubmit = (event) => {
      event.preventDefault();
      const values = editor.read();
      if (values === null) editor.focus();
      else show(context.calls.start({ feature, ...kind.callOf(feature, values) }), true);
    };
    const hasArguments = Object.keys(schema.properties ?? {}).length > 0;
    const submit = h("button.primary", { type: "submit" }, kind.verb);
    rebuild(form, h("form.card.call-form", { novalidate: true, onsubmit },
      editor.node, h("div.actions", submit, hasArguments && editor.toggle)));
  }

  function show(call, isOpen) {
    for (const older of calls.querySelectorAll(":scope > details")) older.open = false;
    calls.prepend(callView(context, call, signal, isOpen));
  }

  store.follow("features", update, signal);
  own.forEach((call, index) => show(call, index === own.length - 1));
  return h("article.feature", head, form, calls);
}

function isCallOf(call, group, id) {
  if (group === "templates") return call.feature?.uriTemplate === id;
  return call.kind === group.slice(0, -1) && call.name === id;
}

function header(feature, kind, store) {
  const uri = feature.uri ?? feature.uriTemplate;
  const name = uri === undefined ? feature.name : feature.title ?? feature.name ?? uri;
  const { owners = {}, defaultOwner, functions = [] } = store.state.application ?? {};
  const owner = owners[uri ?? feature.name] ?? defaultOwner;
  const source = functions.find((each) => each.name === owner)?.file;
  return h("header.page-head",
    h("p.eyebrow", kind.title, owner && [" of the function ", h("code", owner)], source && [" in ", h("code", source)]),
    h("h1", { tabindex: -1, dir: "auto" }, name,
      feature.title && name !== feature.title && h("span.subtitle", feature.title)),
    uri && h("p", h("code", uri)),
    feature.description && h("p.description.prose", { dir: "auto" }, feature.description),
    lazyDetails("Definition", () => jsonView(feature, "definition"), { class: "definition" }));
}

/** Return what suggests values for the arguments of a prompt or a template. */
function completions({ client, store }, kind, feature, { properties }) {
  if (kind.refOf === undefined || !store.state.serverCapabilities.completions) return {};
  const complete = (name) => async (value, others) => {
    const { [name]: own, ...context } = others;
    const given = Object.keys(context).length > 0 ? { context: { arguments: context } } : {};
    const asked = { ref: kind.refOf(feature), argument: { name, value }, ...given };
    return (await client.request("completion/complete", asked)).completion.values;
  };
  return Object.fromEntries(Object.keys(properties).map((name) => [name, complete(name)]));
}
