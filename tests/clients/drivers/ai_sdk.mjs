// The MCP client of the Vercel AI SDK.
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";

import { ask, called, run } from "./lines.mjs";

let client;

await run({
  async connect(options) {
    client = await createMCPClient({
      transport: { type: "http", url: options.url },
      protocolVersionDiscovery: !options.initialize,
      capabilities: options.asks ? { elicitation: {} } : {},
    });
    if (options.asks) client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => ask(params));
    return { protocol: client.initializeResult.protocolVersion };
  },
  list: async () => (await client.listTools()).tools,
  async call(tool, args) {
    const tools = await client.tools();
    return called(await tools[tool].execute(args, { toolCallId: "1", messages: [] }));
  },
  close: () => client.close(),
});
