// The conversation between a test and a driver: one JSON object per line, as lines.py describes.
import { createInterface } from "node:readline";

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => {
  const { value, done } = await input.next();
  return done ? undefined : JSON.parse(value);
};
const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

export async function ask(params) {
  write({ asked: params });
  return read();
}

export const called = (result) => ({
  text: (result.content ?? []).flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"),
  structured: result.structuredContent ?? null,
  is_error: result.isError ?? false,
  meta: result._meta ?? {},
});

export async function run(driver) {
  for (let command = await read(); command; command = await read()) {
    const [[name, given]] = Object.entries(command);
    try {
      const done = name === "call" ? await driver.call(given.tool, given.arguments) : await driver[name](given);
      write({ done: done ?? null });
    } catch (error) {
      write({ failed: { message: String(error.message), code: error.code ?? null } });
    }
  }
  process.exit(0); // open connections must not keep the process
}
