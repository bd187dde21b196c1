// The command line of MCP Inspector: one process, and one connection, for each command.
import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { called, run } from "./lines.mjs";

const main = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
const program = join(dirname(main), "clients/launcher/build/index.js");
const home = mkdtempSync(join(tmpdir(), "inspector-"));
const config = join(home, "mcp.json");

// Prints an object with `result`, with `error`, or, for a tool's error, one with each.
function command(...args) {
  const options = ["--cli", "--config", config, "--server", "server", "--format", "json", "-q"];
  const env = { ...process.env, HOME: home }; // where it keeps what it knows of servers
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, ...options, ...args], { env }, (_, stdout, stderr) => {
      if (stdout.trim()) return resolve(JSON.parse(stdout).result);
      const { message, code } = JSON.parse(stderr).error;
      reject(Object.assign(new Error(message), { code }));
    });
  });
}

await run({
  async connect({ url, initialize }) {
    const server = { type: "streamable-http", url, ...(initialize ? {} : { protocolEra: "modern" }) };
    writeFileSync(config, JSON.stringify({ mcpServers: { server } }));
    return {};
  },
  list: async () => (await command("--method", "tools/list")).tools,
  async call(tool, args) {
    const given = ["--tool-name", tool, "--tool-args-json", JSON.stringify(args)];
    return called(await command("--method", "tools/call", ...given));
  },
  close: async () => {},
});
