// Writes a call as a pytest test with `Player`: the answers that were given, the questions and the result that came.

import { outcomeOf, questionsOf, resultOf } from "../rounds.js";
import { parseJson, sameJson } from "../format.js";
import { defaultProfile } from "../mcp/profile.js";
import { keywords, literal, remark, Source, text } from "./python_text.js";
import { playedRounds, requestOf, tokenOf } from "./recorded_call.js";

const EVERYTHING = defaultProfile().capabilities;
const ANY = new Source("ANY");

/** The released client of an earlier version that declares forms and pages. */
const LEGACY_CLIENT = "python-sdk-initialize";

const CALLS = {
  // In the test, no call has this code.
  "tools/call": ({ name, arguments: { continuation_code, ...given } = {} }) => `call(${text(name)}, ${literal(given)})`,
  "prompts/get": ({ name, arguments: given = {} }) => `prompt(${text(name)}, ${literal(given)})`,
  "resources/read": ({ uri }) => `read(${text(uri)})`,
};

/**
 * Return the source text of the test.
 * @param {object} call
 * @param {{file: string, template: string, hasStandIns: boolean}} application `file` of the function that owns the feature
 *     and the template, as paths in the project
 */
export function player(call, { file, template, hasStandIns }) {
  const name = call.name.replace(/[^A-Za-z0-9]+/g, "_").replace(/^_+|_+$/g, "").toLowerCase();
  const body = steps(call).map((line) => `    ${line}\n`).join("");
  const fixture = hasStandIns ? standIns(template) : "";
  const source = `APP = Path(${text(file)})\n${fixture}\n\ndef test_${name || "call"}() -> None:\n${body}`;
  const title = `${remark(call.name)}, as in the console. Run it in the project's folder with pytest.`;
  return `"""${title}"""\n\n${imports(source)}\n\n${source}`;
}

/** Return the imports that the source text uses. */
function imports(source) {
  const uses = (name) => new RegExp(`\\b${name}\\b`).test(source);
  const testing = ["CANCEL", "DECLINE", "WITH_TASKS", "Player"].filter(uses);
  return [
    uses("Iterator") && "from collections.abc import Iterator",
    "from pathlib import Path",
    uses("ANY") && "from unittest.mock import ANY",
    "",
    uses("pytest") && "import pytest\n",
    uses("EventAuthenticator") && "from mcp_roundtrip.auth.callers import AuthMode",
    uses("EventAuthenticator") && "from mcp_roundtrip.auth.callers import EventAuthenticator",
    `from mcp_roundtrip_testing import ${testing.join(", ")}`,
    uses("serve_stand_ins") && "from mcp_roundtrip_testing.serving import serve_stand_ins",
  ].filter((line) => line !== false).join("\n");
}

const standIns = (template) => `

@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the stand-ins that the template names, as make run does."""
    with serve_stand_ins(Path(${text(template)})) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield
`;

/** Return the statements: the call, each answer, and what came. */
function steps(call) {
  const rounds = playedRounds(call);
  const { method } = requestOf(rounds[0]);
  const lines = [`play = Player(${["APP", ...client(call.profile), ...authorizer(tokenOf(rounds[0]))].join(", ")})`];
  rounds.forEach((round, index) => {
    const before = rounds[index - 1];
    if (before && outcomeOf(before) === "continue") return; // a player follows a state without a question by itself
    const end = rounds.slice(index).find((each) => outcomeOf(each) !== "continue") ?? round;
    const isAnswer = before && outcomeOf(before) === "asking"; // else the call is made again: a question took another way
    const again = `play.${CALLS[method](requestOf(round))}`;
    const sent = isAnswer ? `done.${answering(questionsOf(before), round.answers)}` : again;
    const isTask = outcomeOf(end) === "task";
    lines.push(`done = ${sent}${isTask ? ".task" : ""}`, ...(isTask ? [] : assertions(end, method)));
  });
  return [...lines, ...(call.taskId === undefined ? [] : taskSteps(call))];
}

function taskSteps({ task, taskUpdates }) {
  const answered = taskUpdates.flatMap(({ requests, responses }) =>
    [...questionAssertions(requests), `done = done.${answering(requests, responses)}`]);
  if (task.status === "completed") return [...answered, ...resultAssertions(task.result, "tools/call")];
  if (task.status === "input_required") return [...answered, ...questionAssertions(task.inputRequests)];
  const cancel = task.status === "cancelled" ? ["done = done.cancel()"] : [];
  return [...answered, ...cancel, `assert done.status == ${text(task.status)}`];
}

/** Return the call that answers questions. */
function answering(asked, answers) {
  if (!Object.keys(answers).every((key) => key in asked)) return `respond(${literal(answers)})`;
  const values = Object.entries(answers).map(([key, answer]) => [key, answerValue(asked[key], answer)]);
  return `answer(${keywords(Object.fromEntries(values)).join(", ")})`;
}

/** Return an answer as `Round.answer` takes it. */
function answerValue({ method, params }, answer) {
  if (method !== "elicitation/create") return answer;
  if (answer.action !== "accept") return new Source(answer.action.toUpperCase());
  if (params.mode === "url") return true;
  const { content = {} } = answer;
  const isSingle = Object.keys(content).join() === "value" && [content.value].flat().every((each) => typeof each !== "object");
  return isSingle ? content.value : content;
}

function client({ protocolVersion, capabilities }) {
  if (protocolVersion < "2026") return [`client=${text(LEGACY_CLIENT)}`];
  return sameJson(capabilities, EVERYTHING) ? ["WITH_TASKS"] : [`capabilities=${literal(capabilities)}`];
}

/** Return the arguments that give the player the claims of the access token. */
function authorizer(token) {
  if (token === undefined) return [];
  const payload = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(payload, (each) => each.charCodeAt(0));
  const { iss, sub, client_id, scope } = parseJson(new TextDecoder().decode(bytes));
  const claims = literal(JSON.parse(JSON.stringify({ iss, sub, client_id, scope })));
  return [`authorizer={"jwt": {"claims": ${claims}}}`, 'ports={"auth": EventAuthenticator(AuthMode.JWT)}'];
}

// -- assertions -----------------------------------------------------------------------------------------------------------

function assertions(round, method) {
  const { error } = round.response?.body ?? {};
  if (error !== undefined) return [`assert done.error["code"] == ${literal(error.code)}`];
  if (resultOf(round) === null) return ["# The console received no response to this round."];
  return outcomeOf(round) === "asking" ? questionAssertions(questionsOf(round)) : resultAssertions(resultOf(round), method);
}

function questionAssertions(requests) {
  return Object.entries(requests).map(([key, { method, params }]) => {
    const isShown = method === "elicitation/create" && !isVolatile(params.message);
    return isShown ? `assert done.question(${text(key)}) == ${text(params.message)}` : `assert ${text(key)} in done.asked`;
  });
}

function resultAssertions({ messages, contents, content = [], structuredContent, isError }, method) {
  if (method === "prompts/get") return [`assert done.messages == ${literal(withoutVolatile(messages))}`];
  if (method === "resources/read") return [`assert done.contents == ${literal(withoutVolatile(contents))}`];
  if (!isError && structuredContent !== undefined)
    return [`assert done.structured == ${literal(withoutVolatile(structuredContent))}`];
  const shown = content.filter(({ type }) => type === "text").map((block) => block.text).join("");
  // The text of a tool that raised an unexpected exception names the request.
  const isStable = shown !== "" && !isVolatile(shown) && !(isError && /^The \w+ failed\. Quote /.test(shown));
  const failed = isError ? "assert done.failed" : "assert not done.failed";
  return isStable ? [failed, `assert done.text == ${text(shown)}`] : [failed];
}

// -- ids, times and addresses, which differ in the next run ---------------------------------------------------------------

const VOLATILE = new RegExp(
  [
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", // a UUID
    "\\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{10,}\\b", // hexadecimal digits, such as a digest
    "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d", // a time
    "127\\.0\\.0\\.1:\\d+", // an address of this run
    "\\b[\\w-]{32,}\\b", // a token, or the code of a call
  ].join("|"),
);

/** Whether a value contains such a part. */
export const isVolatile = (value) => VOLATILE.test(typeof value === "string" ? value : JSON.stringify(value));

/** Return a copy of a JSON value with `ANY` in place of each text with such parts. */
export function withoutVolatile(value) {
  if (!isVolatile(value)) return value;
  if (typeof value === "string") return ANY;
  if (Array.isArray(value)) return value.map(withoutVolatile);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutVolatile(each)]));
}
