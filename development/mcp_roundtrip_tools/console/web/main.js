// The console of the local runner: starts it, and shows the view of the address (the part after #).

import { api } from "./api.js";
import { createCalls } from "./calls.js";
import { element, fill, icon } from "./dom.js";
import { loadFeatures } from "./features.js";
import { createClient } from "./mcp/client.js";
import { loadProfile, summary, withUser } from "./mcp/profile.js";
import { watchNews } from "./news.js";
import { keepSession, readSession } from "./session.js";
import { createStore } from "./store.js";
import { activityPage } from "./views/activity.js";
import { clientPage } from "./views/client.js";
import { featurePage } from "./views/feature.js";
import { homePage } from "./views/home.js";
import { featureList } from "./views/lists.js";
import { problemList } from "./views/problems.js";
import { taskPage } from "./views/task.js";
import { tasksPage } from "./views/tasks.js";

const store = createStore({
  application: null, profile: loadProfile(), calls: [], roots: [{ uri: "file:///home/ada/engine", name: "engine" }],
  features: { tools: [], prompts: [], resources: [], templates: [] }, areFeaturesLoaded: false, featuresError: null,
  serverInfo: null, serverCapabilities: {}, instructions: null,
});
const client = createClient(store);
const context = { store, api, client, calls: createCalls({ store, client, api }), refresh };

/** Address -> view: a function of the context, the decoded parameter and a signal that aborts when the view is left. */
const ROUTES = [
  [/^#\/(tools|prompts|resources|templates)\/(.+)$/, (group, id, signal) => featurePage(context, group, id, signal)],
  [/^#\/tasks$/, (signal) => tasksPage(context, signal)],
  [/^#\/tasks\/(.+)$/, (id, signal) => taskPage(context, id, signal)],
  [/^#\/activity$/, (signal) => activityPage(context, signal)],
  [/^#\/client$/, (signal) => clientPage(context, signal)],
  [/^$|^#\/$/, (signal) => homePage(context, signal)],
];

/** How soon to ask again while changed sources are checked. */
const CHECK_MS = 500;

let leave = new AbortController();

/** Show the view of the address. The focus moves to its heading if the user went there. */
function show({ movesFocus = true } = {}) {
  const hash = location.hash.split("?")[0];
  if (hash !== "" && !hash.startsWith("#/")) return; // the skip link
  leave.abort();
  leave = new AbortController();
  const main = document.getElementById("main");
  fill(main, viewOf(hash, leave.signal));
  const heading = main.querySelector("h1");
  const server = store.state.serverInfo?.name ?? "mcp-roundtrip";
  document.title = heading === null ? server : `${heading.firstChild?.textContent ?? ""} · ${server}`;
  setMenu(false);
  if (!movesFocus) return;
  window.scrollTo(0, 0);
  heading?.focus();
}

function viewOf(hash, signal) {
  try {
    for (const [pattern, view] of ROUTES) {
      const match = pattern.exec(hash);
      if (match) return view(...match.slice(1).map(decodeURIComponent), signal);
    }
  } catch (error) {
    reportError(error);
    return element("article", {}, element("h1", { tabindex: -1 }, "This page cannot be shown"), element("p", {}, error.message));
  }
  return element("h1", { tabindex: -1 }, "There is no such page");
}

async function start() {
  const list = featureList(context);
  document.getElementById("columns").prepend(list);
  const menu = document.getElementById("menu");
  menu.prepend(icon("menu"));
  menu.addEventListener("click", () => setMenu(menu.getAttribute("aria-expanded") !== "true"));
  watchNews(document.getElementById("main"));
  store.subscribe("application", showProblems);
  store.subscribe("profile", showProfile);
  showProfile();
  window.addEventListener("hashchange", () => show());
  window.addEventListener("keydown", focusSearch);
  window.addEventListener("focus", refresh);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  store.update({ application: await api.application().catch(() => null) });
  if (store.state.application?.isChecking) setTimeout(refresh, CHECK_MS);
  store.update({ profile: withUser(store.state.profile, store.state.application) });
  resumeSession(store.state.application);
  await loadFeatures(context);
  showServer();
  show({ movesFocus: false });
}

/** Show the calls of this window again after a reload of the page. */
function resumeSession(application) {
  if (application === null) return;
  const session = readSession(application.run);
  if (session !== null) {
    context.calls.restore(session.calls);
    const isUser = application.users.some(({ name }) => name === session.user.user);
    store.update({ roots: session.roots, profile: { ...store.state.profile, ...(isUser ? session.user : {}) } });
  }
  keepSession(store);
}

/** Load the lists again if a source, or the server, is another one: the author may come back from an editor. */
async function refresh() {
  const before = store.state.application;
  const application = await api.application().catch(() => before);
  const areUsersSame = JSON.stringify(application?.users) === JSON.stringify(before?.users);
  const isSame = ["sourcesDigest", "run"].every((name) => application?.[name] === before?.[name]) &&
    JSON.stringify(application?.problems) === JSON.stringify(before?.problems);
  if (application?.isChecking) setTimeout(refresh, CHECK_MS);
  if (isSame && areUsersSame && store.state.featuresError === null) return;
  store.update({ application });
  if (!areUsersSame) store.update({ profile: withUser({ ...store.state.profile, user: null, scopes: null }, application) });
  await loadFeatures(context);
  showServer();
  // Other pages follow what they show, and keep what was typed.
  if (/^#?\/?$/.test(location.hash)) show({ movesFocus: false });
}

function showServer() {
  const { serverInfo, application } = store.state;
  document.getElementById("server-name").textContent = serverInfo?.title ?? serverInfo?.name ?? "mcp-roundtrip";
  document.getElementById("endpoint").textContent = application?.mcpUrl ?? "";
}

function showProblems() {
  fill(document.getElementById("problems"), problemList(store.state.application?.problems));
}

function showProfile() {
  fill(document.getElementById("profile"), icon("client"), element("span", {}, summary(store.state.profile)));
}

function setMenu(isOpen) {
  document.getElementById("menu").setAttribute("aria-expanded", String(isOpen));
  document.getElementById("columns").classList.toggle("menu-open", isOpen);
}

function focusSearch(event) {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  setMenu(true);
  document.getElementById("search").focus();
}

start();
