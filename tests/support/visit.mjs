// Opens a page that the test wrote, under the URL that the test chose, and returns what its requests were answered.

// Not the arguments that the package suggests: they turn the same-origin policy off. Chromium's own protection of
// 127.0.0.1 is off, because other browsers do not have it.
export const args = ["--host-resolver-rules=MAP * 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"];

export default async (browser, { url, html, given }) => {
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
  return answers;
};
