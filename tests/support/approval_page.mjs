// Opens the approver's link without JavaScript, clicks a button, and prints the text before and after.
import { readFileSync } from "node:fs";
import packaged from "@sparticuz/chromium";
import { chromium } from "playwright-core";

const { link, button, screenshots } = JSON.parse(readFileSync(0, "utf8"));
const browser = await chromium.launch({ executablePath: await packaged.executablePath(), args: ["--no-sandbox"] });
try {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 720, height: 560 } });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(link);
  const before = await page.locator("main").innerText();
  if (screenshots) await page.screenshot({ path: `${screenshots}/before.png` });
  await page.getByRole("button", { name: button }).click();
  await page.waitForLoadState();
  const after = await page.locator("main").innerText();
  if (screenshots) await page.screenshot({ path: `${screenshots}/after.png` });
  const buttons = await page.getByRole("button").count();
  console.log(JSON.stringify({ before, after, buttons, url: page.url(), complaints }));
} finally {
  await browser.close();
}
