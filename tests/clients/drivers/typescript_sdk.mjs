// The client of the official TypeScript SDK.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { ask, called, run } from "./lines.mjs";

let client;

await run({
  async connect(options) {
    const capabilities = options.asks ? { elicitation: { form: {}, url: {} } } : {};
    client = new Client(
      { name: "typescript-client", version: "1.0.0" },
      options.initialize ? { capabilities } : { capabilities, versionNegotiation: { mode: "auto" } },
    );
    if (options.asks) client.setRequestHandler("elicitation/create", ({ params }) => ask(params));
    await client.connect(new StreamableHTTPClientTransport(new URL(options.url)));
    return { protocol: client.getNegotiatedProtocolVersion() };
  },
  list: async () => (await client.listTools()).tools,
  call: async (tool, args) => called(await client.callTool({ name: tool, arguments: args })),
  close: () => client.close(),
});
