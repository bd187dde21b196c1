// Signs in at the local issuer with a narrow, dark browser. Returns where the browser ends, and what axe finds.
import { readFileSync } from "node:fs";

export default async (browser, { url, redirect, user }) => {
  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, colorScheme: "dark" });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(url);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  await page.evaluate(readFileSync("node_modules/axe-core/axe.min.js", "utf8")); // by the debugger, which no policy of the page concerns
  const found = await page.evaluate(() => window.axe.run());
  await page.getByLabel("or another user:").fill(user);
  await page.keyboard.press("Tab"); // the first scope
  await page.keyboard.press("Tab"); // Allow
  await page.keyboard.press("Enter");
  await page.waitForURL(`${redirect}**`);
  const violations = found.violations.map(({ id, nodes }) => [id, nodes[0].html]);
  return { end: page.url(), width, violations, complaints };
};
