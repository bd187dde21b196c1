// Writes a call as a program with the official Python client, or with FastMCP for a call that became a task, which the
// official client does not follow. The program gives the answers that were given in the console.

import { invocation, literal, remark, text } from "./python_text.js";
import { answeredQuestions, paramsOf, playedRounds, requestOf, tokenOf } from "./recorded_call.js";

const REQUESTS = {
  "tools/call": ({ name, arguments: given }) => ["call_tool", [text(name), literal(given ?? {}, 12)]],
  "prompts/get": ({ name, arguments: given }) => ["get_prompt", [text(name), literal(given ?? {}, 12)]],
  "resources/read": ({ uri }) => ["read_resource", [text(uri)]],
  "completion/complete": ({ ref, argument, context }) => [
    "complete",
    [reference(ref), literal(argument, 12), ...(context ? [literal(context.arguments ?? {}, 12)] : [])],
  ],
};

/**
 * Return the source text of the program. It prints the result as JSON.
 * @param {object} call
 */
export function python(call) {
  const [first] = playedRounds(call);
  const { method } = requestOf(first);
  const library = call.taskId === undefined ? OFFICIAL : FASTMCP;
  const given = {
    url: first.request.url,
    token: tokenOf(first),
    isLegacy: call.profile.protocolVersion < "2026",
    answers: answeredQuestions(call),
    capabilities: call.profile.capabilities ?? {},
    mirrorsArguments: Object.keys(first.request.headers ?? {}).some((name) => /^mcp-param-/i.test(name)),
    isCompletion: method === "completion/complete",
    request: REQUESTS[method](paramsOf(first)),
  };
  const parts = [
    `"""${remark(call.name ?? method)}, as in the console. Needs: pip install ${library.packages(given)}"""`,
    library.imports(given),
    ...library.handlers(given),
    program(library, given),
    "asyncio.run(main())\n",
  ];
  return parts.join("\n\n").replace(/\n{4,}/g, "\n\n\n");
}

function program(library, given) {
  const [name, parts] = given.request;
  return [
    "",
    "async def main():",
    ...library.open(given),
    ...(given.mirrorsArguments && library === FASTMCP ? [LIST_FIRST] : []),
    invocation(`result = await client.${name}`, parts, 8),
    `        print(${library.print(name)})`,
    "",
  ].join("\n");
}

/** FastMCP knows which arguments it sends as headers, too, once it has the list. The official client lists by itself. */
const LIST_FIRST = "        await client.list_tools()  # it names the arguments that are also sent as headers";

/** The handlers that the program has: one for questions if the client declared them, the others if they were asked. */
function wanted({ capabilities, answers, isCompletion }) {
  const isAsked = (method) => answers.some(({ question }) => question.method === method);
  return {
    elicitation: capabilities.elicitation !== undefined && !isCompletion,
    sampling: isAsked("sampling/createMessage"),
    roots: isAsked("roots/list"),
  };
}

const OFFICIAL = {
  packages: () => "mcp",

  imports(given) {
    const { elicitation, sampling, roots } = wanted(given);
    const types = [
      ...(sampling ? ["CreateMessageResult"] : []),
      ...(elicitation ? ["ElicitResult"] : []),
      ...(roots ? ["ListRootsResult"] : []),
      ...referenceTypes(given),
    ].sort();
    const transport = given.token === undefined ? [] : ["import httpx2"];
    return [
      "import asyncio",
      "",
      ...transport,
      "from mcp import Client",
      ...(transport.length > 0 ? ["from mcp.client.streamable_http import streamable_http_client"] : []),
      ...(types.length > 0 ? [`from mcp_types import ${types.join(", ")}`] : []),
    ].join("\n");
  },

  handlers(given) {
    const { elicitation, sampling, roots } = wanted(given);
    return [
      ...(elicitation ? [elicitationHandler(given, "context, params", "params.message")] : []),
      ...(sampling ? [samplingHandler(given, "context, params")] : []),
      ...(roots ? [rootsHandler(given)] : []),
    ];
  },

  open(given) {
    const { elicitation, sampling, roots } = wanted(given);
    const options = [
      ...(given.isLegacy ? ['mode="legacy"'] : []),
      ...(elicitation ? ["elicitation_callback=answer"] : []),
      ...(sampling ? ["sampling_callback=sample"] : []),
      ...(roots ? ["list_roots_callback=list_roots"] : []),
    ];
    if (given.token === undefined) return [`${invocation("async with Client", [text(given.url), ...options], 4)} as client:`];
    const transport = `streamable_http_client(${text(given.url)}, http_client=http)`;
    return [
      `    headers = {"Authorization": ${text(`Bearer ${given.token}`)}}`,
      "    async with (",
      "        httpx2.AsyncClient(headers=headers) as http,",
      `${invocation("Client", [transport, ...options], 8)} as client,`,
      "    ):",
    ];
  },

  print: () => "result.model_dump_json(by_alias=True, exclude_none=True, indent=2)",
};

const FASTMCP = {
  packages: () => "'fastmcp[tasks]'",

  imports(given) {
    const { elicitation, sampling } = wanted(given);
    return [
      "import asyncio",
      "",
      "import fastmcp_tasks  # noqa: F401  # from here on, calls may become tasks",
      "from fastmcp import Client",
      ...(elicitation ? ["from fastmcp.client.elicitation import ElicitResult"] : []),
      ...(sampling ? ["from mcp_types import CreateMessageResult"] : []),
    ].join("\n");
  },

  handlers(given) {
    const { elicitation, sampling } = wanted(given);
    return [
      ...(elicitation ? [elicitationHandler(given, "message, response_type, params, context", "message")] : []),
      ...(sampling ? [samplingHandler(given, "messages, params, context")] : []),
    ];
  },

  open(given) {
    const { elicitation, sampling, roots } = wanted(given);
    const options = [
      ...(given.token === undefined ? [] : [`auth=${text(given.token)}`]),
      ...(elicitation ? ["elicitation_handler=answer"] : []),
      ...(sampling ? ["sampling_handler=sample"] : []),
      ...(roots
        ? [
            `roots=${literal(
              rootsOf(given).map(({ uri }) => uri),
              8,
            )}`,
          ]
        : []),
    ];
    return [`${invocation("async with Client", [text(given.url), ...options], 4)} as client:`];
  },

  print: () => "result.structured_content",
};

function elicitationHandler({ answers }, parameters, message) {
  const given = answers.filter(({ question }) => question.method === "elicitation/create");
  const rows = given.map(({ question, answer }) => [question.params.message, answer]);
  const lines = rows.map(([asked, answer]) => `${invocation("", [text(asked), literal(answer, 8, 8)], 4)},`);
  const list = lines.length > 0 ? `[\n${lines.join("\n")}\n]` : "[]";
  return `ANSWERS = ${list}


async def answer(${parameters}):
    """Give the answer to this question, or else the next one; decline when none is left."""
    print(${message})
    if not ANSWERS:
        return ElicitResult(action="decline")
    given = next((each for each in ANSWERS if each[0] == ${message}), ANSWERS[0])
    ANSWERS.remove(given)
    return ElicitResult(**given[1])
`;
}

function samplingHandler({ answers }, parameters) {
  const samples = answers.filter(({ question }) => question.method === "sampling/createMessage").map(({ answer }) => answer);
  return `SAMPLES = ${literal(samples, 0, 10)}


async def sample(${parameters}):
    """Give the next text that was written in place of a model's."""
    return CreateMessageResult(**SAMPLES.pop(0))
`;
}

function rootsHandler(given) {
  return `ROOTS = ${literal(rootsOf(given), 0, 8)}


async def list_roots(context):
    return ListRootsResult(roots=ROOTS)
`;
}

function rootsOf({ answers }) {
  const found = answers.filter(({ question }) => question.method === "roots/list");
  return found.at(-1)?.answer.roots ?? [];
}

function reference({ type, ...members }) {
  const name = type === "ref/prompt" ? "PromptReference" : "ResourceTemplateReference";
  const parts = Object.entries(members).map(([key, value]) => `${key}=${literal(value)}`);
  return `${name}(type=${text(type)}, ${parts.join(", ")})`;
}

function referenceTypes({ request: [name, [first]] }) {
  return name === "complete" ? [first.slice(0, first.indexOf("("))] : [];
}
