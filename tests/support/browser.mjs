// Runs programs in one Chromium for each set of its arguments: reads {"program", "given"} in lines, and answers each with
// {"value"} or {"error"}. A program is a module: its default export gets the browser and `given`, and returns the value.
// `args` of the module are further arguments of Chromium. A context with the mark `isKept` stays open for the next program.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import packaged from "@sparticuz/chromium";
import { chromium } from "playwright-core";

const MAX_MS = 80_000; // `answering` ends a program that is silent for longer, and with it the browser of all later tests

const executablePath = await packaged.executablePath();
const browsers = {};

// Fewer processes: what they send each other takes a fifth of Chromium's time.
const FEW_PROCESSES = ["--in-process-gpu", "--enable-features=NetworkServiceInProcess2"];

const launch = (args) => chromium.launch({ executablePath, args: ["--no-sandbox", ...FEW_PROCESSES, ...args] });

async function run({ program, given }) {
  const { default: run, args = [] } = await import(pathToFileURL(program));
  // Chromium can crash at its start, which would fail all tests that share it.
  const browser = await (browsers[args] ??= launch(args).catch(() => launch(args)));
  const close = (contexts) => Promise.all(contexts.map((context) => context.close()));
  let timer;
  const end = new Promise((_, reject) => {
    // What waits for a closed page fails, and says where. Something else may wait without an end.
    const stop = () => close(browser.contexts()).then(() => setTimeout(reject, 1_000, new Error("the program does not end")));
    timer = setTimeout(stop, MAX_MS);
  });
  try {
    return { value: await Promise.race([run(browser, given), end]) };
  } catch (error) {
    return { error: error.stack };
  } finally {
    clearTimeout(timer);
    await close(browser.contexts().filter((context) => !context.isKept));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line))));
}
await Promise.all(Object.values(browsers).map(async (browser) => (await browser).close()));
