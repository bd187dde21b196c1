// A program of browser.mjs: takes the steps of a visit, and returns what those saw that look at something.
import { audit } from "./axe.mjs";
import { holds, inField, onButton, sees, waits } from "./find.mjs";

const LOOKS = new Set(["count", "evaluate", "focused", "texts"]);

let kept; // The visits have a page each, and share the cache of one context: the console has sixty files.

export default async function visit(browser, { url, steps, options }) {
  const { viewport = { width: 1280, height: 720 }, colorScheme = "light", reducedMotion = "reduce" } = options ?? {};
  if (kept?.isClosed() ?? true) kept = await newPage(browser);
  const page = kept;
  const complaints = [];
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme, reducedMotion });
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  try {
    await page.goto(url);
    await waits(page, "main h1");
    const seen = [];
    const take = verbs(page);
    for (const [verb, ...args] of steps) {
      try {
        const found = await take[verb](...args);
        if (LOOKS.has(verb) && found !== undefined && found !== null) seen.push(found);
      } catch (error) {
        const shown = await page.locator("body").innerText().catch(() => "");
        throw new Error(`${JSON.stringify([verb, ...args])}: ${error.message}\n${shown}`);
      }
    }
    await leave(page);
    return { seen, complaints };
  } catch (error) {
    kept = undefined;
    await page.context().close();
    throw error;
  }
}

async function newPage(browser) {
  const context = await browser.newContext({ locale: "en-US" });
  context.isKept = true;
  return context.newPage();
}

/** Leave nothing of a visit to the next one. */
async function leave(page) {
  for (const event of ["console", "pageerror", "dialog"]) page.removeAllListeners(event);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.goto(new URL("no-such-page", page.url().split("#")[0]).href);
  await page.evaluate(() => { localStorage.clear(); sessionStorage.clear(); });
  await page.mouse.move(0, 0);
}

function verbs(page) {
  let held, released;
  return {
    // Goes to another address; the page has handled the event before this listener.
    open: (hash) => page.evaluate((value) => new Promise((resolve) => {
      window.addEventListener("hashchange", () => resolve(null), { once: true });
      location.hash = value;
    }), hash),
    // Answers requests of a method instead of the server: with a result, or with an error if it has a code.
    answer: (method, outcome) => page.route("**/mcp", (route) => {
      const request = route.request();
      if (request.headers()["mcp-method"] !== method) return route.fallback();
      const { id } = JSON.parse(request.postData());
      const [status, member] = "code" in outcome ? [400, { error: outcome }] : [200, { result: outcome }];
      return route.fulfill({ status, contentType: "application/json", body: JSON.stringify({ jsonrpc: "2.0", id, ...member }) });
    }),
    // Lets the server report that a source has changed.
    change_sources: () => page.route("**/console/api/application", async (route) => {
      const response = await route.fetch().catch(() => null);
      if (response === null) return; // the visit has ended
      return route.fulfill({ response, json: { ...(await response.json()), sourcesDigest: "changed" } });
    }),
    abort: (method) => page.route("**/mcp", (route) =>
      (route.request().headers()["mcp-method"] === method ? route.abort() : route.fallback())),
    // Answers requests of a method with an HTTP status that is no JSON-RPC message.
    fail: (method, status) => page.route("**/mcp", (route) =>
      (route.request().headers()["mcp-method"] === method ? route.fulfill({ status, body: "no" }) : route.fallback())),
    // Keeps requests of a method back until they are released.
    hold: (method) => {
      const [entrance, exit] = [held, released] = [gate(), gate()];
      return page.route("**/mcp", async (route) => {
        if (route.request().headers()["mcp-method"] !== method) return route.fallback();
        entrance.open();
        await exit.isOpen;
        return route.fallback();
      });
    },
    // Returns to the tab.
    return: () => page.evaluate(() => { window.dispatchEvent(new Event("focus")); }),
    release: () => held.isOpen.then(released.open),
    scroll: (pixels) => page.mouse.wheel(0, pixels),
    fill: (label, text) => inField(page, label, (field) => field.fill(text)),
    check: (label) => inField(page, label, (field) => field.check()),
    select: (label, option) => inField(page, label, (field) => field.selectOption({ label: option })),
    click: (name) => onButton(page, name, (button) => button.click()),
    reload: async () => { await page.reload(); await waits(page, "main h1"); },
    press: async (...keys) => { for (const key of keys) await page.keyboard.press(key); },
    type: (text) => page.keyboard.type(text),
    focus: (selector) => page.locator(selector).first().focus(),
    see: (text) => sees(page, text),
    gone: (selector) => waits(page, selector, true),
    wait: (selector) => waits(page, selector),
    texts: async (selector) => {
      const visible = page.locator(selector).filter({ visible: true });
      // An element that the page has replaced meanwhile has no lines.
      const read = () => visible.evaluateAll((all) => all.every((each) => each.isConnected) && all.map((each) => each.innerText));
      let found = await read();
      while (!found) found = await read();
      return found;
    },
    // Waits until the last element of a selector is in view and has the focus.
    shows: (selector) => holds(page, isShown, selector).then(() => null),
    count: (selector) => page.locator(selector).filter({ visible: true }).count(),
    evaluate: (expression) => page.evaluate(expression),
    focused: () => page.evaluate(() => {
      const { activeElement } = document;
      return activeElement.labels?.[0]?.innerText ?? activeElement.getAttribute("aria-label") ?? activeElement.innerText.split("\n")[0];
    }),
    // Opens the cards of answered rounds.
    unfold: () => page.evaluate(() => { for (const card of document.querySelectorAll(".round > details")) card.open = true; }),
    // Fails if the page is wider than the window.
    fits: async () => {
      const excess = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (excess !== 0) throw new Error(`the page is ${excess} pixels wider than the window`);
    },
    size: (width, height) => page.setViewportSize({ width, height }),
    scheme: (colorScheme) => page.emulateMedia({ colorScheme }),
    // Fails if the page violates a rule of accessibility.
    axe: async () => {
      const { violations } = await audit(page);
      const found = violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 200))]);
      if (found.length > 0) throw new Error(JSON.stringify(found));
    },
  };
}

function gate() {
  let open;
  const isOpen = new Promise((resolve) => { open = resolve; });
  return { open, isOpen };
}

/** Whether an element has the focus, and is in view below the bar at the top: from its beginning, and whole if it has room. */
function isShown(selector) {
  const found = [...document.querySelectorAll(selector)].at(-1);
  const { activeElement } = document;
  if (found === undefined || !found.contains(activeElement)) return false;
  const room = { top: document.querySelector(".top").getBoundingClientRect().bottom, bottom: visualViewport.height };
  const isIn = ({ top, bottom }) => top >= room.top && top < room.bottom && bottom <= room.bottom;
  const place = found.getBoundingClientRect();
  const hasRoom = place.height + 32 <= room.bottom - room.top;
  return isIn(activeElement.getBoundingClientRect()) && (hasRoom ? isIn(place) : place.top >= room.top && place.top < room.top + 32);
}
