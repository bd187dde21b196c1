// Opens a page that the test wrote, under the URL that the test chose, and prints what its requests were answered.
import { readFileSync } from "node:fs";
import packaged from "@sparticuz/chromium";
import { chromium } from "playwright-core";

const { url, html, given } = JSON.parse(readFileSync(0, "utf8"));
const browser = await chromium.launch({
  executablePath: await packaged.executablePath(),
  // Not the arguments that the package suggests: they turn the same-origin policy off. Chromium's own protection of
  // 127.0.0.1 is off, because other browsers do not have it.
  args: ["--no-sandbox", "--host-resolver-rules=MAP * 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"],
});
try {
  const page = await browser.newPage();
  const answers = [];
  page.on("console", (message) => console.error(message.text()));
  page.on("response", (response) => {
    if (response.url() !== url) answers.push([response.request().method(), response.url(), response.status()]);
  });
  await page.route(url, (route) => route.fulfill({ contentType: "text/html", body: html }));
  await page.addInitScript((value) => {
    window.given = value;
    window.ready = new Promise((resolve) => { window.begin = resolve; });
  }, given);
  await page.goto(url, { waitUntil: "domcontentloaded" });
  await page.unroute(url); // while it intercepts, Playwright answers preflights itself
  await page.evaluate(() => window.begin());
  await page.waitForFunction(() => window.done === true);
  console.log(JSON.stringify(answers));
} finally {
  await browser.close();
}
