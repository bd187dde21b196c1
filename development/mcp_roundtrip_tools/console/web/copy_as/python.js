// Writes a call as a program with the official Python client, which gives the answers that were given in the console.

import { literal, remark, text } from "./python_text.js";
import { answeredQuestions, playedRounds, requestOf, tokenOf } from "./recorded_call.js";

const CALLS = {
  "tools/call": ({ name, arguments: given = {} }) => `call_tool(${text(name)}, ${literal(given)})`,
  "prompts/get": ({ name, arguments: given = {} }) => `get_prompt(${text(name)}, ${literal(given)})`,
  "resources/read": ({ uri }) => `read_resource(${text(uri)})`,
};

/** Return the source text of the program, which prints the result as JSON. Throws an Error for a call that became a task. */
export function python(call) {
  if (call.taskId !== undefined) throw new Error("the official client does not follow tasks; copy it as a Player test");
  const [first] = playedRounds(call);
  const { method, ...params } = requestOf(first);
  const token = tokenOf(first);
  const given = answeredQuestions(call);
  const answersTo = (asked) => given.filter(({ question }) => question.method === asked);
  const handlers = [
    call.profile.capabilities.elicitation && elicitationHandler(answersTo("elicitation/create")),
    answersTo("sampling/createMessage").length > 0 && samplingHandler(answersTo("sampling/createMessage")),
    answersTo("roots/list").length > 0 && rootsHandler(answersTo("roots/list")),
  ].filter(Boolean);
  const url = text(first.request.url);
  const transport = token === undefined ? url : `streamable_http_client(${url}, http_client=http)`;
  const mode = call.profile.protocolVersion < "2026" ? ['mode="legacy"'] : [];
  const client = `Client(${[transport, ...mode, ...handlers.map(({ option }) => option)].join(", ")}) as client`;
  const types = handlers.map(({ type }) => type).sort();
  return [
    `"""${remark(call.name)}, as in the console. Needs: pip install mcp"""`,
    "",
    "import asyncio",
    "",
    ...(token === undefined ? [] : ["import httpx2"]),
    "from mcp import Client",
    ...(token === undefined ? [] : ["from mcp.client.streamable_http import streamable_http_client"]),
    ...(types.length > 0 ? [`from mcp_types import ${types.join(", ")}`] : []),
    "",
    "",
    ...handlers.flatMap(({ source }) => [source, "", ""]),
    "async def main():",
    ...(token === undefined ? [] : [`    headers = {"Authorization": ${text(`Bearer ${token}`)}}`]),
    `    async with ${token === undefined ? "" : "httpx2.AsyncClient(headers=headers) as http, "}${client}:`,
    `        result = await client.${CALLS[method](params)}`,
    "        print(result.model_dump_json(by_alias=True, exclude_none=True, indent=2))",
    "",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");
}

function elicitationHandler(given) {
  const rows = given.map(({ question, answer }) => `    (${text(question.params.message)}, ${literal(answer)}),\n`);
  const source = `ANSWERS = [${rows.length > 0 ? "\n" : ""}${rows.join("")}]


async def answer(context, params):
    """Give the answer to this question, or else the next one; decline when none is left."""
    print(params.message)
    if not ANSWERS:
        return ElicitResult(action="decline")
    given = next((each for each in ANSWERS if each[0] == params.message), ANSWERS[0])
    ANSWERS.remove(given)
    return ElicitResult(**given[1])`;
  return { source, option: "elicitation_callback=answer", type: "ElicitResult" };
}

function samplingHandler(given) {
  const source = `SAMPLES = ${literal(given.map(({ answer }) => answer))}


async def sample(context, params):
    """Give the next text that was written in place of a model's."""
    return CreateMessageResult(**SAMPLES.pop(0))`;
  return { source, option: "sampling_callback=sample", type: "CreateMessageResult" };
}

function rootsHandler(given) {
  const source = `ROOTS = ${literal(given.at(-1).answer.roots)}


async def list_roots(context):
    return ListRootsResult(roots=ROOTS)`;
  return { source, option: "list_roots_callback=list_roots", type: "ListRootsResult" };
}
