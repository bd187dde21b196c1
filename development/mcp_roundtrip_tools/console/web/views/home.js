// The first page: what runs, what does not, and what to try.

import { element, fill } from "../dom.js";
import { count } from "../format.js";
import { copyButton } from "./json_view.js";
import { featureHash } from "./lists.js";

export function homePage({ store, api }, signal) {
  const table = element("div", { class: "home" });
  const update = () => {
    const { application } = store.state;
    fill(table, application && [
      functions(application),
      lines("Warnings", application.warnings),
      lines("Not served here", application.leftOut),
    ]);
  };
  store.subscribe("application", update, signal);
  update();
  // Execution environments come and go. The page stays as it is if the server does not answer.
  api.application().then((application) => { if (!signal.aborted) store.update({ application }); }, () => {});
  return content(store, table);
}

function content(store, table) {
  const { application, features, serverInfo, instructions, featuresError } = store.state;
  return element("article", { class: "home" },
    element("header", { class: "page-head" },
      element("p", { class: "eyebrow" }, "MCP server on this computer"),
      element("h1", { tabindex: -1 }, serverInfo?.title ?? serverInfo?.name ?? "Console"),
      instructions && element("p", { class: "description prose" }, instructions)),
    !application?.problems?.length && featuresError && element("p", { class: "card error" }, featuresError),
    application && element("p", { class: "endpoint" },
      "Endpoint ", element("code", {}, application.mcpUrl), copyButton(application.mcpUrl, "Copy the URL")),
    tools(features.tools ?? []),
    table);
}

function tools(listed) {
  if (listed.length === 0) return null;
  return element("section", {},
    element("h2", {}, "Tools", element("span", { class: "count" }, listed.length)),
    element("ul", { class: "tiles" }, listed.slice(0, 60).map((tool) => element("li", {},
      element("a", { class: "tile card", href: featureHash("tools", tool.name) },
        element("strong", {}, tool.name), element("span", {}, firstSentence(tool.description ?? "")))))),
    listed.length > 60 && element("p", { class: "hint" }, `${count(listed.length - 60, "more tool")} in the list.`));
}

const firstSentence = (text) => text.split(/(?<=[.!?])\s/)[0];

const COLUMNS = ["Function", "Kind", "Source", "Environments"];

function functions({ functions: listed = [] }) {
  const kinds = { front_door: "front door", tool: "tool", worker: "worker" };
  return element("section", {},
    element("h2", {}, "Functions", element("span", { class: "count" }, listed.length)),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Functions" },
      element("table", {},
        element("thead", {}, element("tr", {}, COLUMNS.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, listed.map((each) => element("tr", {},
          element("th", { scope: "row" }, element("code", {}, each.name)),
          element("td", {}, kinds[each.kind] ?? each.kind),
          element("td", {}, element("code", {}, each.file ?? "")),
          element("td", {}, each.environments.join(", ") || "none yet")))))));
}

/** Return a list of sentences with its heading: the settings that functions may need, or what is left out, with its reasons. */
function lines(heading, listed = []) {
  if (listed.length === 0) return null;
  return element("section", {},
    element("h2", {}, heading, element("span", { class: "count" }, listed.length)),
    element("ul", { class: "left-out" }, listed.map((line) => element("li", {}, line))));
}
