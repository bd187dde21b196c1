// Shows a view in a host made with app-bridge, takes the steps that the test lists, and returns what the host received.
import { readFileSync } from "node:fs";

import { audit } from "./axe.mjs";
import { holds, inField, onButton, sees, waits } from "./find.mjs";

// The policy for a view without `csp` in its metadata, and frames, which the sandbox itself needs.
const POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'self'";

let kept; // the page of the host, which loads a hundred modules: visits follow each other in it
let log, answers, server;

async function openHost(browser, { pages, modules }) {
  const page = await browser.newPage({ timezoneId: "Europe/Berlin" });
  page.context().isKept = true;
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) log.complaints.push(message.text());
  });
  page.on("pageerror", (error) => log.complaints.push(String(error)));
  await page.route("**/*", (route) => {
    const url = new URL(route.request().url());
    const type = (path) => (path.endsWith("html") ? "text/html" : "text/javascript");
    if (url.origin === "http://sandbox.test")
      return route.fulfill({ contentType: "text/html", body: pages.sandbox, headers: { "Content-Security-Policy": POLICY } });
    if (url.href === "http://host.test/") return route.fulfill({ contentType: "text/html", body: pages.host });
    if (url.origin === "http://host.test" && url.pathname.startsWith("/modules/"))
      return route.fulfill({ contentType: type(url.pathname), body: readFileSync(modules + url.pathname.slice(8)) });
    if (url.pathname !== "/favicon.ico") log.complaints.push(`requested ${url}`);
    return route.abort();
  });
  await page.exposeFunction("record", (what, value) => { log[what].push(value); });
  await page.exposeFunction("answerCall", async (params) => {
    log.calls.push(params);
    if (!server) return answers.shift() ?? { error: { code: -32000, message: "The test has no further answer" } };
    return rpc("tools/call", params);
  });
  await page.goto("http://host.test/");
  await page.waitForFunction(() => window.start);
  return page;
}

let sent = 0;
async function rpc(method, params) {
  const mirrored = params.name ?? params.uri;
  const response = await fetch(server.url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": mirrored, ...server.headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++sent, method, params: { ...params, _meta: server.meta } }),
  });
  return response.json();
}

export default async (browser, given) => {
  log = { calls: [], messages: [], contexts: [], links: [], heights: [], complaints: [], values: [] };
  ({ answers = [], server } = given);
  const page = await (kept ??= openHost(browser, given));
  try {
    await page.setViewportSize({ width: given.width ?? 688, height: 900 });
    await page.evaluate((value) => start(value), given);
    await takeSteps(page, given);
    await page.evaluate(() => host.end());
    return log;
  } catch (error) {
    kept = undefined;
    await page.context().close();
    throw error;
  }
};

async function takeSteps(page, { steps, width }) {
  const frame = page.frames().at(-1);
  const take = {
    result: (result) => page.evaluate((value) => host.result(value), result),
    // Calls a tool of the server as the model would, and shows its result in the view.
    call: async (name, args) => {
      const { result } = await rpc("tools/call", { name, arguments: args });
      log.values.push(result);
      await take.result(result);
    },
    read: async (uri) => log.values.push((await rpc("resources/read", { uri })).result),
    cancelled: () => page.evaluate(() => host.cancelled()),
    teardown: async () => log.values.push(await page.evaluate(() => host.teardown())),
    // The view has read a notification when it answers what is sent after it.
    context: (context) => page.evaluate(async (value) => {
      await host.context(value);
      await host.request("ping", "ping", {});
    }, context),
    capabilities: async () => log.values.push(await page.evaluate(() => host.capabilities())),
    request: async (method) => log.values.push(await page.evaluate((value) => host.request(value, value, {}), method)),
    elicit: (params) => page.evaluate((value) => { window.elicited = host.request("elicit", "elicitation/create", value); }, params),
    elicited: async () => log.values.push(await page.evaluate(() => window.elicited)),
    press: (key, times = 1) => Array.from({ length: times }).reduce((done) => done.then(() => page.keyboard.press(key)), Promise.resolve()),
    type: (text) => page.keyboard.type(text),
    fill: (label, text) => inField(frame, label, (field) => field.fill(text)),
    check: (label) => inField(frame, label, (field) => field.check()),
    select: (label, option) => inField(frame, label, (field) => field.selectOption(option)),
    click: (name) => onButton(frame, name, (button) => button.click()),
    see: (text) => sees(frame, text),
    gone: () => waits(frame, "main", true),
    height: (least, most) => holds(page, ([low, high]) => {
      const { height } = document.querySelector("iframe").getBoundingClientRect();
      return height >= low && height <= high;
    }, [least, most]),
    evaluate: async (expression) => log.values.push(await frame.evaluate(expression)),
    // Returns the rules of accessibility that the view violates.
    axe: async () => {
      const { violations } = await audit(frame);
      log.values.push(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]));
    },
    tree: async () => log.values.push(await frame.locator("body").ariaSnapshot()),
    fitted: async (path) => {
      const box = await page.locator("iframe").boundingBox();
      await page.setViewportSize({ width: width ?? 688, height: Math.ceil(box.y + box.height + 24) });
      await page.screenshot({ path });
    },
  };
  for (const [verb, ...args] of steps) {
    try {
      await take[verb](...args);
    } catch (error) {
      const shown = await frame.locator("body").innerText();
      throw new Error(`step ${JSON.stringify([verb, ...args])}: ${error.message}\nshown: ${shown}\n${JSON.stringify(log)}`);
    }
  }
}
