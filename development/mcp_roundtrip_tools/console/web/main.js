// The console of the local runner: starts it, and shows the view of the address (the part after #).

import { api } from "./api.js";
import { createCalls } from "./calls.js";
import { fill, h, icon } from "./dom.js";
import { loadFeatures } from "./features.js";
import { sameJson } from "./format.js";
import { createClient } from "./mcp/client.js";
import { defaultProfile, summary, withUser } from "./mcp/profile.js";
import { watchNews } from "./news.js";
import { createStore } from "./store.js";
import { activityPage } from "./views/activity.js";
import { clientPage } from "./views/client.js";
import { featurePage } from "./views/feature.js";
import { homePage } from "./views/home.js";
import { featureList } from "./views/lists.js";
import { taskPage, tasksPage } from "./views/task.js";

const store = createStore({
  application: null, profile: defaultProfile(), calls: [], roots: [{ uri: "file:///home/ada/engine", name: "engine" }],
  features: { tools: [], prompts: [], resources: [], templates: [] }, featuresError: null,
  serverInfo: null, serverCapabilities: {}, instructions: null,
});
const client = createClient(store);
const context = { store, api, client, calls: createCalls({ store, client, api }) };

/** Address -> view: a function of the context, the decoded parameters and a signal that aborts when the view is left. */
const ROUTES = [
  [/^#\/(tools|prompts|resources|templates)\/(.+)$/, featurePage],
  [/^#\/tasks$/, tasksPage],
  [/^#\/tasks\/(.+)$/, taskPage],
  [/^#\/activity$/, activityPage],
  [/^#\/client$/, clientPage],
  [/^$|^#\/$/, homePage],
];

const part = (id) => document.getElementById(id);
let leave = new AbortController();

/** Show the view of the address. The focus moves to its heading if the user went there. */
function show({ movesFocus = true } = {}) {
  const [hash] = location.hash.split("?");
  if (hash !== "" && !hash.startsWith("#/")) return; // the skip link
  leave.abort();
  leave = new AbortController();
  fill(part("main"), viewOf(hash, leave.signal));
  const heading = part("main").querySelector("h1");
  const server = store.state.serverInfo?.name ?? "mcp-roundtrip";
  document.title = [heading?.firstChild.textContent, server].filter(Boolean).join(" · ");
  setMenu(false);
  if (!movesFocus) return;
  window.scrollTo(0, 0);
  heading?.focus();
}

function viewOf(hash, signal) {
  try {
    for (const [pattern, view] of ROUTES) {
      const match = pattern.exec(hash);
      if (match) return view(context, ...match.slice(1).map(decodeURIComponent), signal);
    }
  } catch (error) {
    reportError(error);
    return h("article", h("h1", { tabindex: -1 }, "This page cannot be shown"), h("p", error.message));
  }
  return h("h1", { tabindex: -1 }, "There is no such page");
}

async function start() {
  part("columns").prepend(featureList(context));
  part("menu").prepend(icon("menu"));
  part("menu").addEventListener("click", () => setMenu(part("menu").getAttribute("aria-expanded") !== "true"));
  watchNews(part("main"));
  store.follow("profile", showProfile);
  window.addEventListener("hashchange", () => show());
  window.addEventListener("keydown", focusSearch);
  window.addEventListener("keydown", closeMenu);
  window.addEventListener("focus", refresh);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    part("main").focus();
  });
  const application = await api.application().catch(() => null);
  store.update({ application, profile: withUser(store.state.profile, application) });
  await loadFeatures(context);
  showServer();
  show({ movesFocus: false });
}

/** Load the lists again if a source, or the server, is another one: the author may come back from an editor. */
async function refresh() {
  const before = store.state.application;
  const application = await api.application().catch(() => before);
  const isSame = (...names) => names.every((name) => sameJson(application?.[name], before?.[name]));
  if (isSame("sourcesDigest", "run", "users") && store.state.featuresError === null) return;
  store.update({ application });
  const anonymous = { ...store.state.profile, user: null, scopes: null };
  if (!isSame("users")) store.update({ profile: withUser(anonymous, application) });
  await loadFeatures(context);
  showServer();
  // Other pages follow what they show, and keep what was typed.
  if (/^#?\/?$/.test(location.hash)) show({ movesFocus: false });
}

function showServer() {
  const { serverInfo, application } = store.state;
  part("server-name").textContent = serverInfo?.title ?? serverInfo?.name ?? "mcp-roundtrip";
  part("endpoint").textContent = application?.mcpUrl ?? "";
}

function showProfile() {
  fill(part("profile"), icon("client"), h("span", summary(store.state.profile)));
}

function setMenu(isOpen) {
  part("menu").setAttribute("aria-expanded", String(isOpen));
  part("columns").classList.toggle("menu-open", isOpen);
}

function closeMenu(event) {
  if (event.key !== "Escape" || part("menu").getAttribute("aria-expanded") !== "true") return;
  setMenu(false);
  part("menu").focus();
}

function focusSearch(event) {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  setMenu(true);
  part("search").focus();
}

start();
