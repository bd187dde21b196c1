// The list of everything that the server offers, with a search field. Arrow keys move in it; it is one stop of
// the Tab key, however many tools there are.

import { fill, h, icon } from "../dom.js";

const GROUPS = [
  { name: "tools", title: "Tools", id: (tool) => tool.name },
  { name: "prompts", title: "Prompts", id: (prompt) => prompt.name },
  { name: "resources", title: "Resources", id: (resource) => resource.uri },
  { name: "templates", title: "Resource templates", id: (template) => template.uriTemplate },
];

const PAGES = [["#/tasks", "Tasks", "task"], ["#/activity", "Activity", "activity"], ["#/client", "Client", "client"]];

/** Return the address of the page of a feature. */
export const featureHash = (group, id) => `#/${group}/${encodeURIComponent(id)}`;

export function featureList({ store }) {
  const search = h("input.input", {
    id: "search", type: "search", placeholder: "Search", autocomplete: "off", spellcheck: "false",
    "aria-label": "Search tools, prompts and resources", "aria-keyshortcuts": "/", oninput: render,
    onkeydown: (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      if (event.key === "Enter") links()[0]?.click();
      else links()[0]?.focus();
    },
  });
  const list = h("div.groups", { onkeydown: onKey, onfocusin: (event) => setStop(event.target) });
  const found = h("p.visually-hidden", { role: "status" });
  const links = () => [...list.querySelectorAll("a")];

  function render() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (entry) => words.every((word) => searchText(entry).includes(word));
    const { features, featuresError } = store.state;
    const groups = GROUPS.map((group) => ({ ...group, entries: features[group.name].filter(matches) }));
    const total = groups.reduce((sum, group) => sum + group.entries.length, 0);
    const isSearch = words.length > 0;
    fill(list,
      groups.filter((group) => group.entries.length > 0).map(groupView),
      isSearch && total === 0 && h("p.hint.empty", "Nothing has these words in its name or description."),
      featuresError && h("p.error", featuresError),
      !isSearch && h("section", h("h2", "Runner"), h("ul", PAGES.map(([href, title, name]) =>
        h("li", h("a", { href, tabindex: -1 }, icon(name), title))))));
    found.textContent = isSearch ? `${total} found` : "";
    markCurrent();
  }

  function groupView({ name, title, id, entries }) {
    const entryView = (entry) =>
      h("li", h("a", { href: featureHash(name, id(entry)), tabindex: -1, title: entry.description }, shownName(entry)));
    return h("section", h("h2", title, h("span.count", entries.length)), h("ul", entries.map(entryView)));
  }

  function markCurrent() {
    const [hash] = location.hash.split("?");
    const all = links();
    const current = all.find((link) => link.hash === hash) ?? all.find((link) => hash.startsWith(`${link.hash}/`));
    for (const link of all) link.toggleAttribute("aria-current", false);
    current?.setAttribute("aria-current", "page");
    setStop(current ?? all[0]);
    current?.scrollIntoView({ block: "nearest" });
  }

  function setStop(stop) {
    for (const link of links()) link.tabIndex = link === stop ? 0 : -1;
  }

  function onKey(event) {
    const all = links();
    const index = all.indexOf(document.activeElement);
    const target = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: all.length - 1 }[event.key];
    if (index < 0 || target === undefined) return;
    event.preventDefault();
    if (target < 0) search.focus();
    else all[Math.min(target, all.length - 1)].focus();
  }

  store.follow("features", render);
  window.addEventListener("hashchange", markCurrent);
  return h("nav.sidebar", { id: "features", "aria-label": "Tools, prompts and resources" },
    h("div.search", icon("search"), search), found, list);
}

/** Tools and prompts are called by their names; resources have titles for people, and URIs. */
function shownName({ name, title, uri, uriTemplate }) {
  const address = uri ?? uriTemplate;
  const [first, second] = address ? [title ?? name ?? address, address] : [name, title];
  return [h("span.name", first), second && second !== first && h("span.note", second)];
}

function searchText({ name, title, description, uri, uriTemplate }) {
  return [name, title, description, uri, uriTemplate].filter(Boolean).join(" ").toLowerCase();
}
