// Plays calls with the client of the console, and prints each with its texts of "copy as".
import { readFileSync } from "node:fs";

const { web, url, calls } = JSON.parse(readFileSync(0, "utf8"));
globalThis.location = { href: url };
const { fetch: send } = globalThis;
globalThis.fetch = (path, { headers: { "x-console": own, ...headers }, ...options }) => send(new URL(path, url), { ...options, headers });
const load = (name) => import(`file://${web}/${name}`);
const { curl } = await load("copy_as/curl.js");
const { python } = await load("copy_as/python.js");
const { player } = await load("copy_as/player.js");
const { defaultProfile } = await load("mcp/profile.js");
const { createClient } = await load("mcp/client.js");

const printed = [];
for (const given of calls) printed.push(await play(given));
console.log(JSON.stringify(printed));

async function play({ method, params, answers, application, capabilities, protocolVersion, tool }) {
  const profile = { ...defaultProfile(), ...(capabilities && { capabilities }), ...(protocolVersion && { protocolVersion }) };
  const client = createClient({ state: { application: { mcpUrl: url }, profile } });
  const call = { name: params.name ?? params.uri, profile, rounds: [], taskUpdates: [] };
  let given = {};
  for (;;) {
    const { requestState, inputRequests = {}, resultType } = await round(given);
    if (resultType === "task") await follow();
    if (resultType !== "input_required") break;
    given = { ...(requestState && { requestState }), inputResponses: pick(inputRequests) };
  }
  const text = (write) => { try { return write(call, application); } catch { return null; } };
  return {
    curl: call.rounds.map(curl), python: text(python), player: text(player),
    bodies: call.rounds.map(({ response }) => response.body), task: call.task,
  };

  async function round({ inputResponses = {}, ...more }) {
    const sent = { ...params, ...more, ...(Object.keys(inputResponses).length > 0 && { inputResponses }) };
    call.rounds.push({ answers: inputResponses, ...(await client.exchange(method, sent, { tool })) });
    const { result } = call.rounds.at(-1).response.body;
    call.taskId = result?.taskId;
    return result ?? {};
  }

  function pick(asked) {
    return Object.fromEntries(Object.keys(asked).map((key) => [key, answers[key]]));
  }

  async function follow() {
    const { taskId } = call;
    do {
      call.task = await client.request("tasks/get", { taskId });
      if (call.task.status !== "input_required") continue;
      const requests = call.task.inputRequests;
      call.taskUpdates.push({ requests, responses: pick(requests) });
      await client.request("tasks/update", { taskId, inputResponses: pick(requests) });
    } while (call.task.status !== "completed" && (await new Promise((resolve) => setTimeout(resolve, 50, true))));
  }
}
