// The official TypeScript tasks package on top of the official client.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createTaskSessionFromClient,
  resultFromTaskOutcome,
} from "@modelcontextprotocol/ext-tasks/client";

import { ask, called, run } from "./lines.mjs";

const TASKS = "io.modelcontextprotocol/tasks";
const clientInfo = { name: "ext-tasks-driver", version: "1.0.0" };

let client, session;

// The package frames the requests of tasks, and leaves it to the host to send them.
const dispatchTo = (url) => async (request, options) => {
  const { method, params } = request;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": client.getNegotiatedProtocolVersion(),
      "mcp-method": method,
      ...(params.name ?? params.taskId ? { "mcp-name": params.name ?? params.taskId } : {}),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: crypto.randomUUID(), ...request }),
    signal: options?.signal,
  });
  const { result, error } = await response.json();
  return error ? { kind: "error", error } : { kind: "result", result };
};

await run({
  async connect(options) {
    const clientCapabilities = {
      ...(options.asks ? { elicitation: { form: {}, url: {} } } : {}),
      extensions: { [TASKS]: {} },
    };
    client = new Client(clientInfo, {
      capabilities: clientCapabilities,
      versionNegotiation: { mode: "auto" },
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(options.url)));
    session = createTaskSessionFromClient(client, {
      endpointId: options.url,
      rawDispatch: dispatchTo(options.url),
      v2RequestFraming: { protocolVersion: client.getNegotiatedProtocolVersion(), clientInfo, clientCapabilities },
      tools: { currentTool: () => undefined },
      onInputRequest: ({ params }) => ask(params),
    });
    return { protocol: client.getNegotiatedProtocolVersion() };
  },
  list: async () => (await client.listTools()).tools,
  async call(tool, args) {
    const execution = await session.callTool(tool, args);
    const { outcome } = await execution.settle();
    return called(resultFromTaskOutcome(outcome));
  },
  async close() {
    await session.close();
    await client.close();
  },
});
