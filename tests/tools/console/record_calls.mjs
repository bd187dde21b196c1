// Plays a client of /mcp, as the console does, and prints each call with its texts of "copy as".
import { readFileSync } from "node:fs";

const { web, url, calls } = JSON.parse(readFileSync(0, "utf8"));
const load = (name) => import(`file://${web}/${name}`);
const { curl } = await load("copy_as/curl.js");
const { python } = await load("copy_as/python.js");
const { player } = await load("copy_as/player.js");
const { defaultProfile } = await load("mcp/profile.js");
const { initializeRequest, readSession, legacyRequest } = await load("mcp/legacy.js");

const NAMES = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
};
const META = "io.modelcontextprotocol/";
let id = 0;

const printed = [];
for (const given of calls) printed.push(await play(given));
console.log(JSON.stringify(printed));

async function play({ method, params, answers, application, capabilities, protocolVersion, resend = [] }) {
  const profile = { ...defaultProfile(), ...(capabilities && { capabilities }), ...(protocolVersion && { protocolVersion }) };
  const call = { id: `call-${id}`, name: params.name ?? params.uri ?? "completion", profile, rounds: [], taskUpdates: [] };
  const session = protocolVersion === undefined ? undefined : await open(profile);
  const first = await send(call, request(profile, session, method, params));
  let round = first;
  while (round.response.body.result?.resultType === "input_required") round = await next(round, answers);
  for (const { damaged, ...again } of resend) {
    const state = first.response.body.result.requestState;
    const changed = state.slice(0, 40) + (state[40] === "A" ? "B" : "A") + state.slice(41);
    const sent = { ...params, inputResponses: again.answers, requestState: damaged ? changed : state };
    await send(call, request(profile, session, method, sent), damaged ? "damaged state" : "older state");
  }
  const { result } = round.response.body;
  if (result?.resultType === "task") await follow(call, result.taskId);
  return {
    curl: call.rounds.map(curl),
    python: python(call),
    player: application && player(call, application),
    bodies: call.rounds.map(({ response }) => response.body),
    task: call.task,
  };

  async function next(before) {
    const asked = before.response.body.result.inputRequests ?? {};
    const inputResponses = Object.fromEntries(Object.keys(asked).map((key) => [key, answers[key]]));
    const sent = { ...params, inputResponses, requestState: before.response.body.result.requestState };
    return send(call, request(profile, session, method, sent));
  }

  async function follow(made, taskId) {
    made.taskId = taskId;
    for (;;) {
      const { response } = await exchange(request(profile, session, "tasks/get", { taskId }));
      made.task = response.body.result;
      if (made.task.status === "completed") return;
      if (made.task.status === "input_required") {
        const requests = made.task.inputRequests;
        const responses = Object.fromEntries(Object.keys(requests).map((key) => [key, answers[key]]));
        made.taskUpdates.push({ requests, responses });
        await exchange(request(profile, session, "tasks/update", { taskId, inputResponses: responses }));
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function open(profile) {
  const { response } = await exchange({ url, ...initializeRequest(profile, (id += 1)) });
  return readSession(response.headers, response.body);
}

function request(profile, session, method, params) {
  if (session !== undefined) return { url, ...legacyRequest(session, method, params, (id += 1)) };
  const headers = {
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": profile.protocolVersion,
    "mcp-method": method,
    "x-console": "1",
    ...(NAMES[method] && { "mcp-name": params[NAMES[method]] }),
    ...(params.arguments?.region && { "mcp-param-region": params.arguments.region }),
  };
  const _meta = {
    [`${META}protocolVersion`]: profile.protocolVersion,
    [`${META}clientInfo`]: profile.clientInfo,
    [`${META}clientCapabilities`]: profile.capabilities,
  };
  return { url, headers, body: { jsonrpc: "2.0", id: (id += 1), method, params: { ...params, _meta } } };
}

async function send(call, sent, experiment) {
  const number = call.rounds.length + 1;
  const round = { number, ...(await exchange(sent)), experiment, ...(experiment && { branch: number }) };
  call.rounds.push(round);
  return round;
}

async function exchange(sent) {
  const { "x-console": own, ...headers } = sent.headers;
  const response = await fetch(sent.url, { method: "POST", headers, body: JSON.stringify(sent.body) });
  const text = await response.text();
  const data = text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .at(-1);
  const body = JSON.parse(data === undefined ? text : data.slice(6));
  return { request: sent, response: { status: response.status, headers: Object.fromEntries(response.headers), body } };
}
