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
  const handlers = Object.entries(HANDLERS).filter(([name]) => name in call.profile.capabilities).map(([, handler]) =>
    ({ ...handler, source: handler.write(given.filter(({ question }) => question.method === handler.method)) }));
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

/** Capability -> the handler that gives the answers, its option of `Client`, and the type that it returns. */
const HANDLERS = {
  elicitation: {
    method: "elicitation/create", option: "elicitation_callback=answer", type: "ElicitResult",
    write: (given) => `ANSWERS = ${literal(given.map(({ question, answer }) => [question.params.message, answer]))}


async def answer(context, params):
    """Give the answer to this question, or else the next one; decline when none is left."""
    print(params.message)
    if not ANSWERS:
        return ElicitResult(action="decline")
    given = next((each for each in ANSWERS if each[0] == params.message), ANSWERS[0])
    ANSWERS.remove(given)
    return ElicitResult(**given[1])`,
  },
  sampling: {
    method: "sampling/createMessage", option: "sampling_callback=sample", type: "CreateMessageResult",
    write: (given) => `SAMPLES = ${literal(given.map(({ answer }) => answer))}


async def sample(context, params):
    """Give the next text that was written in place of a model's."""
    return CreateMessageResult(**SAMPLES.pop(0))`,
  },
  roots: {
    method: "roots/list", option: "list_roots_callback=list_roots", type: "ListRootsResult",
    write: (given) => `ROOTS = ${literal(given.at(-1)?.answer.roots ?? [])}


async def list_roots(context):
    return ListRootsResult(roots=ROOTS)`,
  },
};
