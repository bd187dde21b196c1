// Opens the approver's link without JavaScript, clicks a button, and returns the text before and after.

export default async (browser, { link, button, screenshots }) => {
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
  return { before, after, buttons, url: page.url(), complaints };
};
