// Runs programs in one Chromium for each set of its arguments: reads {"program", "given"} in lines, and answers each with
// {"value"} or {"error"}. A program is a module: its default export gets the browser and `given`, and returns the value.
// `args` of the module are further arguments of Chromium. A context with the mark `isKept` stays open for the next program.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import packaged from "@sparticuz/chromium";
import { chromium } from "playwright-core";

const executablePath = await packaged.executablePath();
const browsers = {};

// Fewer processes: what they send each other takes a fifth of Chromium's time.
const FEW_PROCESSES = ["--in-process-gpu", "--enable-features=NetworkServiceInProcess2"];

const launch = (args) => chromium.launch({ executablePath, args: ["--no-sandbox", ...FEW_PROCESSES, ...args] });

async function run({ program, given }) {
  const { default: run, args = [] } = await import(pathToFileURL(program));
  // Chromium can crash at its start, which would fail all tests that share it.
  const browser = await (browsers[args] ??= launch(args).catch(() => launch(args)));
  try {
    return { value: await run(browser, given) };
  } catch (error) {
    return { error: error.stack };
  } finally {
    await Promise.all(browser.contexts().filter((context) => !context.isKept).map((context) => context.close()));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line))));
}
await Promise.all(Object.values(browsers).map(async (browser) => (await browser).close()));
