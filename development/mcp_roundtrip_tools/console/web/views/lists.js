// The list of everything that the server offers, with a search field. Arrow keys move in it; it is one stop of
// the Tab key, however many tools there are.

import { element, fill, icon } from "../dom.js";

const GROUPS = [
  { name: "tools", title: "Tools", id: (tool) => tool.name },
  { name: "prompts", title: "Prompts", id: (prompt) => prompt.name },
  { name: "resources", title: "Resources", id: (resource) => resource.uri },
  { name: "templates", title: "Resource templates", id: (template) => template.uriTemplate },
];

const NOTHING = "Nothing has these words in its name or description.";

const PAGES = [
  { hash: "#/tasks", title: "Tasks", icon: "task" },
  { hash: "#/activity", title: "Activity", icon: "activity" },
  { hash: "#/client", title: "Client", icon: "client" },
];

/** Return the address of the page of a feature. */
export const featureHash = (group, id) => `#/${group}/${encodeURIComponent(id)}`;

export function featureList({ store }) {
  const search = element("input", {
    id: "search", type: "search", class: "input", placeholder: "Search", autocomplete: "off", spellcheck: "false",
    "aria-label": "Search tools, prompts and resources", "aria-keyshortcuts": "/", oninput: render,
    onkeydown: (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      if (event.key === "Enter") links()[0]?.click();
      else links()[0]?.focus();
    },
  });
  const list = element("div", { class: "groups", onkeydown: onKey, onfocusin: (event) => setStop(event.target) });
  const found = element("p", { class: "visually-hidden", role: "status" });
  const links = () => [...list.querySelectorAll("a")];

  function render() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (entry) => words.every((word) => searchText(entry).includes(word));
    const groups = GROUPS.map((group) => ({ ...group, entries: (store.state.features[group.name] ?? []).filter(matches) }));
    const total = groups.reduce((sum, group) => sum + group.entries.length, 0);
    fill(list,
      groups.filter((group) => group.entries.length > 0).map(groupView),
      total === 0 && words.length > 0 && element("p", { class: "hint empty" }, NOTHING),
      !store.state.application?.problems?.length && store.state.featuresError && element("p", { class: "error" }, store.state.featuresError),
      words.length === 0 && pages());
    found.textContent = words.length > 0 ? `${total} found` : "";
    markCurrent();
  }

  function groupView({ name, title, id, entries }) {
    return element("section", {},
      element("h2", {}, title, element("span", { class: "count" }, entries.length)),
      element("ul", {}, entries.map((entry) => element("li", {},
        element("a", { href: featureHash(name, id(entry)), tabindex: -1, title: entry.description }, shownName(entry))))));
  }

  function pages() {
    return element("section", {}, element("h2", {}, "Runner"), element("ul", {}, PAGES.map((page) =>
      element("li", {}, element("a", { href: page.hash, tabindex: -1 }, icon(page.icon), page.title)))));
  }

  function markCurrent() {
    const hash = location.hash.split("?")[0];
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

  store.subscribe("features", render);
  window.addEventListener("hashchange", markCurrent);
  render();
  return element("nav", { class: "sidebar", id: "features", "aria-label": "Tools, prompts and resources" },
    element("div", { class: "search" }, icon("search"), search), found, list);
}

/** Tools and prompts are called by their names; resources have titles for people, and URIs. */
function shownName({ name, title, uri, uriTemplate }) {
  const address = uri ?? uriTemplate;
  const [first, second] = address ? [title ?? name ?? address, address] : [name, title];
  return [
    element("span", { class: "name" }, first),
    second && second !== first && element("span", { class: "note" }, second),
  ];
}

function searchText(entry) {
  return [entry.name, entry.title, entry.description, entry.uri, entry.uriTemplate].filter(Boolean).join(" ").toLowerCase();
}
