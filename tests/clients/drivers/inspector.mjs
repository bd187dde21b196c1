// The command line of MCP Inspector: one connection for each command. Commands run in this process, by the function
// that its launcher calls: the start of a process for each would be most of their time.
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { called, run } from "./lines.mjs";

const main = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
const { runCli, handleError } = await import(join(dirname(main), "clients/cli/build/index.js"));
const home = mkdtempSync(join(tmpdir(), "inspector-"));
process.env.HOME = home; // where it keeps what it knows of servers
const config = join(home, "mcp.json");

// Returns the exit status of a command, and what it prints.
async function command({ configuration, args }) {
  writeFileSync(config, JSON.stringify(configuration));
  const [server] = Object.keys(configuration.mcpServers);
  const options = ["--config", config, "--server", server, "--format", "json", "-q"];
  const done = { status: 0, stdout: "", stderr: "" };
  const { exit, stdout, stderr } = process;
  const written = [stdout.write, stderr.write];
  const capture = (name) => (text, printed) => {
    done[name] += text;
    printed?.();
    return true;
  };
  stdout.write = capture("stdout");
  stderr.write = capture("stderr");
  process.exit = (status) => (done.status = status);
  try {
    await runCli([process.execPath, main, ...options, ...args]).catch(handleError);
  } finally {
    [stdout.write, stderr.write] = written;
    process.exit = exit;
  }
  return done;
}

// Prints an object with `result`, with `error`, or, for a tool's error, one with each.
let configuration;
async function result(...args) {
  const { stdout, stderr } = await command({ configuration, args });
  if (stdout.trim()) return JSON.parse(stdout).result;
  const { message, code } = JSON.parse(stderr).error;
  throw Object.assign(new Error(message), { code });
}

await run({
  command,
  async connect({ url, initialize }) {
    const server = { type: "streamable-http", url, ...(initialize ? {} : { protocolEra: "modern" }) };
    configuration = { mcpServers: { server } };
    return {};
  },
  list: async () => (await result("--method", "tools/list")).tools,
  async call(tool, args) {
    const given = ["--tool-name", tool, "--tool-args-json", JSON.stringify(args)];
    return called(await result("--method", "tools/call", ...given));
  },
  close: async () => {},
});
