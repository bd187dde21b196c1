// Renders Mermaid diagrams in Chromium, and returns for each its error, or its size and its texts.

export default async (browser, { mermaid, diagrams, images }) => {
  const page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
  await page.addScriptTag({ path: mermaid });
  const rendered = [];
  for (const [number, text] of diagrams.entries()) {
    rendered.push(await page.evaluate(async ([id, source]) => {
      mermaid.initialize({ startOnLoad: false });
      document.body.replaceChildren();
      try {
        const { svg } = await mermaid.render(id, source);
        document.body.innerHTML = svg;
        const shown = document.querySelector("svg");
        const { width, height } = shown.getBoundingClientRect();
        return { width, height, texts: shown.textContent, title: shown.querySelector("title")?.textContent ?? "" };
      } catch (error) {
        return { error: String(error) };
      }
    }, [`diagram${number}`, text]));
    if (images) await page.screenshot({ path: `${images}/diagram${number}.png`, fullPage: true });
  }
  return rendered;
};
