// Opens a question page, follows steps as a user at a keyboard, and returns what the steps saw.
import { audit } from "./axe.mjs";

export default async (browser, { options, tamper, steps }) => {
  const context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", ...options });
  let page = await context.newPage();
  const complaints = [];
  const requests = [];
  const listen = (opened) => {
    opened.on("console", (message) => complaints.push(message.text()));
    opened.on("pageerror", (error) => complaints.push(String(error)));
    opened.on("dialog", (dialog) => { complaints.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
    opened.on("request", (request) => requests.push([request.method(), request.url(), request.headers()]));
  };
  listen(page);
  if (tamper) {
    await page.route("**/questions?*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace("</main>", `${tamper}</main>`) });
    });
  }
  const seen = [];
  const does = {
    goto: async (url) => { const response = await page.goto(url); return response.status(); },
    press: async (keys) => { for (const key of keys.split(" ")) await page.keyboard.press(key); await page.waitForLoadState(); },
    submit: async (key) => {
      await Promise.all([page.waitForNavigation(), page.keyboard.press(key)]);
      await page.evaluate(() => new Promise(requestAnimationFrame));  // the first rendering moves the focus (autofocus)
    },
    type: async (text) => page.keyboard.insertText(text),
    click: async (name) => { await Promise.all([page.waitForNavigation(), page.getByRole("button", { name, exact: true }).click()]); },
    open: async (name) => {
      const [opened] = await Promise.all([context.waitForEvent("page"), page.getByRole("link", { name }).click()]);
      await opened.waitForLoadState();
      return [opened.url(), await opened.evaluate(() => [window.opener === null, document.referrer])];
    },
    focused: async () => page.evaluate(() => {
      const element = document.activeElement;
      const label = element.labels?.[0]?.innerText ?? element.getAttribute("aria-label") ?? element.innerText;
      return `${element.tagName.toLowerCase()} ${(label ?? "").split("\n")[0].trim()}`;
    }),
    text: async (selector) => page.locator(selector).first().innerText(),
    count: async (selector) => page.locator(selector).count(),
    evaluate: async (expression) => page.evaluate(expression),
    url: async () => page.url(),
    audit: async () => {
      const { violations, passed } = await audit(page);
      return [violations.map((rule) => [rule.id, rule.nodes[0].html.slice(0, 200)]), passed];
    },
    screenshot: async (path) => { await page.screenshot({ path, fullPage: true }); },
  };
  for (const [name, argument] of steps) seen.push((await does[name](argument)) ?? null);
  return { seen, complaints, requests };
};
