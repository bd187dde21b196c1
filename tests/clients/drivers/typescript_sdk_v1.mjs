// The client of the official TypeScript SDK before version 2: it opens with `initialize`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { ask, called, run } from "./lines.mjs";

let client;

await run({
  async connect(options) {
    const capabilities = options.asks ? { elicitation: { form: {}, url: {} } } : {};
    client = new Client({ name: "typescript-v1-driver", version: "1.0.0" }, { capabilities });
    if (options.asks) client.setRequestHandler(ElicitRequestSchema, ({ params }) => ask(params));
    const transport = new StreamableHTTPClientTransport(new URL(options.url));
    await client.connect(transport);
    return { protocol: transport.protocolVersion };
  },
  list: async () => (await client.listTools()).tools,
  call: async (tool, args) => called(await client.callTool({ name: tool, arguments: args })),
  close: () => client.close(),
});
