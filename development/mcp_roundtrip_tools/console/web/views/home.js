// The first page: a first call to try, what runs, and what does not.

import { fill, h } from "../dom.js";
import { count, shortJson } from "../format.js";
import { exampleArguments } from "../mcp/schema.js";
import { meaningOf } from "../words.js";
import { copyButton } from "./json_view.js";
import { featureHash } from "./lists.js";

const MAX_TILES = 60;
const KINDS = { front_door: "front door", tool: "tool", worker: "worker" };

export function homePage({ store, api }, signal) {
  const place = h("div.home");
  const update = () => {
    const { application } = store.state;
    fill(place, application && [
      section("Functions", application.functions.length, h("ul.rows", application.functions.map(functionRow))),
      notServed(application.leftOut),
    ]);
  };
  store.follow("application", update, signal);
  // Execution environments come and go. The page stays as it is if the server does not answer.
  api.application().then((application) => { if (!signal.aborted) store.update({ application }); }, () => {});
  const { application, features: { tools }, serverInfo, instructions, featuresError } = store.state;
  const url = application?.mcpUrl;
  return h("article.home",
    h("header.page-head",
      h("p.eyebrow", "MCP server on this computer"),
      h("h1", { tabindex: -1 }, serverInfo?.title ?? serverInfo?.name ?? "Console"),
      instructions && h("p.description.prose", { dir: "auto" }, instructions)),
    featuresError && h("p.card.error", featuresError),
    url && h("p.endpoint", "Endpoint ", h("code", url), copyButton(url, "Copy the URL")),
    tools.length > 0 && [firstCall(tools, application?.asking ?? []), tileSection(tools)],
    place);
}

/** Suggest a tool that asks, with arguments filled in. */
function firstCall(tools, asking) {
  const tool = tools.find(({ name }) => asking.includes(name));
  if (tool === undefined) return null;
  const given = exampleArguments(tool);
  const href = `${featureHash("tools", tool.name)}?${encodeURIComponent(JSON.stringify(given))}`;
  return h("section.card.first-call",
    h("div", h("h2", "Try a call that asks"),
      h("p.hint", "The tool stops and asks you. Each request and its response become a card."),
      h("code", `${tool.name} ${shortJson(given)}`)),
    h("a.button.primary", { href }, "Open it with these arguments"));
}

function section(title, number, ...children) {
  return h("section", h("h2", title, h("span.count", number)), children);
}

function tileSection(tools) {
  const firstSentence = (text) => text.split(/(?<=[.!?])\s/)[0];
  const tile = ({ name, description = "" }) => h("li", h("a.tile.card", { href: featureHash("tools", name) },
    h("strong", name), h("span", { dir: "auto" }, firstSentence(description))));
  const more = tools.length - MAX_TILES;
  return section("Tools", tools.length, h("ul.tiles", tools.slice(0, MAX_TILES).map(tile)),
    more > 0 && h("p.hint", `${count(more, "more tool")} in the list.`));
}

function functionRow({ name, kind, file, environments }) {
  const running = environments.length > 0 ? environments.join(", ") : "no environment yet";
  return h("li", h("code", name), h("span.chip", { title: meaningOf(KINDS[kind]) }, KINDS[kind]), h("code.hint", file),
    h("span.hint", { title: meaningOf("environment") }, running));
}

/** Return what is left out, with its reasons. */
function notServed(listed) {
  return listed.length > 0 && section("Not served here", listed.length, h("ul.left-out", listed.map((line) => h("li", line))));
}
