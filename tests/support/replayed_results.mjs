// Gives recorded results to the official TypeScript clients, and schemas to Ajv, as replayed_results.py describes.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

import { Client } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";

const { sessions, schemas } = JSON.parse(readFileSync(0, "utf8"));
console.debug = console.log = console.warn = () => {}; // standard output is for the verdicts

class Replay {
  constructor(opening) {
    this.opening = opening;
  }

  async start() {}

  async close() {
    this.onclose?.();
  }

  async send({ id, method, params }) {
    if (id === undefined) return;
    const isRetry = params?.inputResponses ?? params?.requestState;
    const result = this.opening[method] ?? (isRetry ? this.last : this.result);
    queueMicrotask(() => this.onmessage({ jsonrpc: "2.0", id, result }));
  }
}

function modern() {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} };
  const client = new Client({ name: "modern", version: "1" }, { capabilities, versionNegotiation: { mode: "auto" } });
  const content = { type: "text", text: "" };
  client.setRequestHandler("elicitation/create", async () => ({ action: "cancel" }));
  client.setRequestHandler("sampling/createMessage", async () => ({ role: "user", model: "m", content }));
  client.setRequestHandler("roots/list", async () => ({ roots: [] }));
  return client;
}

const clients = {
  modern,
  legacy: () => new Client({ name: "legacy", version: "1" }),
  "version 1": () => new ClientV1({ name: "version-1", version: "1" }),
};

const send = {
  "tools/list": (client, params) => client.listTools(params),
  "tools/call": (client, params, toolDefinition) =>
    client instanceof ClientV1 ? client.callTool(params) : client.callTool(params, { toolDefinition }),
  "prompts/list": (client, params) => client.listPrompts(params),
  "prompts/get": (client, params) => client.getPrompt(params),
  "resources/list": (client, params) => client.listResources(params),
  "resources/templates/list": (client, params) => client.listResourceTemplates(params),
  "resources/read": (client, params) => client.readResource(params),
  "completion/complete": (client, params) => client.complete(params),
};

async function refusalsOf(name, session) {
  const found = [];
  const replay = new Replay(session.opening);
  const client = clients[name]();
  await client.connect(replay);
  for (const step of session.steps) {
    Object.assign(replay, step);
    try {
      const read = await send[step.method](client, step.params, step.tool);
      if (step.member && !isDeepStrictEqual(read[step.member], step.result[step.member])) {
        throw new Error(`changed to ${JSON.stringify(read[step.member])}`);
      }
    } catch (error) {
      found.push([step.where, String(error)]);
    }
  }
  return found;
}

const refusals = {};
for (const [name, session] of Object.entries(sessions)) refusals[name] = await refusalsOf(name, session);

const ajv = new Ajv2020({ strict: false, logger: false, unicodeRegExp: true });
addFormats(ajv);
const verdicts = schemas.map(([schema, values]) => {
  try {
    const validate = ajv.compile(schema);
    return values.map((value) => validate(value));
  } catch (error) {
    return String(error);
  }
});
process.stdout.write(JSON.stringify({ refusals, verdicts }));
