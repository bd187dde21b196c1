// Signs in at the local issuer with a narrow, dark browser. Returns where the browser ends, and what axe finds.
import { audit } from "./axe.mjs";

export default async (browser, { url, redirect }) => {
  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, colorScheme: "dark" });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(url);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  const { violations } = await audit(page);
  await page.getByLabel("ada").focus();
  await page.keyboard.press("Tab"); // the first scope
  await page.keyboard.press("Tab"); // Allow
  await page.keyboard.press("Enter");
  await page.waitForURL(`${redirect}**`);
  const found = violations.map(({ id, nodes }) => [id, nodes[0].html]);
  return { end: page.url(), width, violations: found, complaints };
};
