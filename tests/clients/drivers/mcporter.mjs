// mcporter, by the functions that its command line calls: a runtime, and so a session, for each command. (The command
// line itself destroys the standard input when a command ends.)
import { createRuntime } from "mcporter";

import { called, run } from "./lines.mjs";

let servers;
async function command(use) {
  const runtime = await createRuntime({ servers });
  try {
    return await use(runtime);
  } finally {
    await runtime.close();
  }
}

await run({
  async connect({ url }) {
    servers = [{ name: "server", command: { kind: "http", url: new URL(url) } }];
    return {};
  },
  list: () => command((runtime) => runtime.listTools("server", { includeSchema: true })),
  call: async (tool, args) => called(await command((runtime) => runtime.callTool("server", tool, { args }))),
  close: async () => {},
});
