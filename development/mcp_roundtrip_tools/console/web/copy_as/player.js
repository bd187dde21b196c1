// Writes a call as a pytest test with `Player`: exactly what was clicked, with the questions and results that came.

import { identifier, invocation, keywords, literal, remark, Source, text } from "./python_text.js";
import { assertions, questionAssertions, taskAssertions } from "./player_assertions.js";
import { Variables } from "./player_variables.js";
import {
  answersOf,
  paramsOf,
  profileOf,
  questionsOf,
  receivedState,
  requestOf,
  responseOf,
  sentRounds,
  tokenOf,
} from "./recorded_call.js";

const EVERYTHING = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} };
const WITH_TASKS = { ...EVERYTHING, extensions: { "io.modelcontextprotocol/tasks": {} } };

/** The released client of an earlier version that declares forms and pages. */
const LEGACY_CLIENT = "python-sdk-initialize";

const CALLS = {
  // In the test, no call has this code.
  "tools/call": ["call", ({ name, arguments: { continuation_code, ...given } = {} }) => [text(name), literal(given, 8)]],
  "prompts/get": ["prompt", ({ name, arguments: given }) => [text(name), literal(given ?? {}, 8)]],
  "resources/read": ["read", ({ uri }) => [text(uri)]],
};

/**
 * Return the source text of the test.
 * @param {object} call
 * @param {{file: string, template?: string, hasStandIns?: boolean}} application `file` of the function that owns the
 *   feature and the template, as paths in the project
 */
export function player(call, application) {
  const rounds = sentRounds(call);
  const { method } = requestOf(rounds[0]);
  const body = [`    play = ${newPlayer(call.profile, rounds[0])}`, ...(method in CALLS ? steps(call, rounds) : request(rounds))];
  const source = body.join("\n");
  const name = identifier(`test ${call.name ?? method}`);
  return [
    '"""What was clicked in the console, as a test. Run it in the project\'s folder with pytest."""',
    imports(source, application),
    `APP = Path(${text(application.file)})`,
    ...(application.hasStandIns ? [standIns(application.template ?? "template.yaml")] : []),
    `\ndef ${name}() -> None:\n${source}\n`,
  ].join("\n\n");
}

/** Return the imports that the source text uses. */
function imports(source, { hasStandIns }) {
  const uses = (name) => new RegExp(`\\b${name}\\b`).test(source);
  const testing = ["CANCEL", "DECLINE", "WITH_TASKS", "Player"].filter(uses);
  return [
    ...(hasStandIns ? ["from collections.abc import Iterator"] : []),
    "from pathlib import Path",
    ...(uses("ANY") ? ["from unittest.mock import ANY"] : []),
    ...(hasStandIns ? ["", "import pytest"] : []),
    "",
    ...(uses("EventAuthenticator")
      ? [
          "from mcp_roundtrip.auth.callers import AuthMode",
          "from mcp_roundtrip.auth.event_authenticator import EventAuthenticator",
        ]
      : []),
    `from mcp_roundtrip_testing import ${testing.join(", ")}`,
    ...(hasStandIns ? ["from mcp_roundtrip_testing.serving import serve_stand_ins"] : []),
  ].join("\n");
}

function standIns(template) {
  return `
@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the stand-ins that the template names, as make run does."""
    with serve_stand_ins(Path(${text(template)})) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield`;
}

/** Return the expression of a player that is the client and the user of a round. */
function newPlayer(profile, round, more = []) {
  return invocation("Player", ["APP", ...client(profile), ...authorizer(round), ...more], 4).trim();
}

function client({ protocolVersion, capabilities = {} }) {
  if (protocolVersion < "2026") return [`client=${text(LEGACY_CLIENT)}`];
  const declared = canonical(capabilities);
  if (declared === canonical(EVERYTHING)) return [];
  return [declared === canonical(WITH_TASKS) ? "WITH_TASKS" : `capabilities=${literal(capabilities, 8)}`];
}

/** Return the arguments that give the player the claims of the round's access token. */
function authorizer(round) {
  const claims = claimsOf(tokenOf(round));
  if (claims === undefined) return [];
  const known = ["iss", "sub", "client_id", "scope"].filter((name) => name in claims).map((name) => [name, claims[name]]);
  return [
    `authorizer=${literal({ jwt: { claims: Object.fromEntries(known) } }, 8)}`,
    `ports=${literal({ auth: new Source("EventAuthenticator(AuthMode.JWT)") })}`,
  ];
}

function claimsOf(token) {
  const payload = token?.split(".")[1];
  if (payload === undefined) return undefined;
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    );
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function request(rounds) {
  const { method } = requestOf(rounds[0]);
  const parts = [text(method), ...keywords(Object.entries(paramsOf(rounds[0])))];
  const { values } = responseOf(rounds[0]).result?.completion ?? {};
  return [
    invocation("message = play.request", parts, 4),
    values === undefined
      ? `    assert message["error"]["code"] == ${literal(responseOf(rounds[0]).error?.code)}`
      : `    assert message["result"]["completion"]["values"] == ${literal(values, 4, 60)}`,
  ];
}

/** Write each round as a statement and its assertions. A later round continues the variable that had its state. */
function steps(call, rounds) {
  const variables = new Variables();
  const lines = [];
  for (const round of rounds) {
    const received = receivedState(round);
    const answers = answersOf(round);
    const before = variables.holderOf(received);
    if (before?.isCheckpoint && Object.keys(answers).length === 0) {
      lines.splice(before.from); // the player has followed the checkpoint by itself: assert what came after it
      write(before.statement, round);
    } else write(statement(round, before, variables), round);
  }
  return [...lines, ...taskSteps(call, variables.last)];

  function write(expression, round) {
    const from = lines.length;
    if (round.experiment !== undefined && expression !== undefined)
      lines.push(`    # ${remark(NOTES[round.experiment] ?? round.experiment)}`);
    if (expression === undefined) {
      lines.push(
        `    # Left out, because a player cannot do it: ${remark(round.experiment ?? "a round with an unknown state")}.`,
      );
      return;
    }
    const variable = variables.add(round, from, expression);
    const becomesTask = responseOf(round).result?.resultType === "task";
    lines.push(expression(variable.name, becomesTask ? ".task" : ""));
    if (!becomesTask) lines.push(...assertions(variable.name, round));
  }
}

const NOTES = {
  resent: "The console sent this round again.",
  "older state": "The console went back to an older state.",
  "damaged state": "The console changed one character of the state.",
  "other user": "The console sent the round as another user.",
  "other client": "The console sent the round as another client.",
};

/** Return a function that writes the statement of a round; undefined if a player cannot send it. */
function statement(round, before, variables) {
  const { method } = requestOf(round);
  const [verb, argumentsOf] = CALLS[method];
  const params = paramsOf(round);
  const answers = answersOf(round);
  const received = receivedState(round);
  if (round.experiment === "other version") return undefined;
  if (received === undefined) return (name, end) => invocation(`${name} = play.${verb}`, argumentsOf(params), 4) + end;
  if (["other user", "other client"].includes(round.experiment))
    return before && otherPlayer(round, before, method, params, answers);
  if (before !== undefined) {
    const [call, parts] = answering(questionsOf(before.round), answers);
    return (name, end) => invocation(`${name} = ${before.name}.${call}`, parts, 4) + end;
  }
  const damage = variables.damageOf(received);
  if (damage === undefined) return undefined;
  const { name: source, position } = damage;
  return (name, end) =>
    [
      `    state = ${source}.state or ""`,
      `    changed = "A" if state[${position}] != "A" else "B"`,
      `    damaged = state[:${position}] + changed + state[${position + 1}:]`,
      invocation(`${name} = play.send_round`, [text(method), literal(params, 8), literal(answers, 8), "damaged"], 4) + end,
    ].join("\n");
}

/** Return a function that writes a round of another client or user, who has the state of a variable. */
function otherPlayer(round, before, method, params, answers) {
  const shared = ["key=play.key", "clock=play.clock"];
  const parts = [text(method), literal(params, 8), literal(answers, 8), `${before.name}.state`];
  return (name, end) =>
    `    other = ${newPlayer(profileOf(round), round, shared)}\n${invocation(`${name} = other.send_round`, parts, 4)}${end}`;
}

/** Return the method that answers, and its arguments. */
function answering(asked, answers) {
  const entries = Object.entries(answers);
  if (entries.length === 0) return ["respond", []];
  if (!entries.every(([key]) => key in asked)) return ["respond", [literal(answers, 8)]];
  return ["answer", keywords(entries.map(([key, answer]) => [key, answerValue(asked[key], answer)]))];
}

/** Return an answer as `Round.answer` takes it. */
function answerValue(question, answer) {
  if (question.method !== "elicitation/create") return answer;
  if (answer.action === "decline") return new Source("DECLINE");
  if (answer.action === "cancel") return new Source("CANCEL");
  if (question.params.mode === "url") return true;
  const content = answer.content ?? {};
  const [only, ...others] = Object.entries(content);
  const isSingle = only?.[0] === "value" && others.length === 0 && (typeof only[1] !== "object" || Array.isArray(only[1]));
  return isSingle ? only[1] : content;
}

function taskSteps(call, last) {
  if (call.taskId === undefined || last === undefined) return [];
  const lines = [];
  for (const { requests, responses } of call.taskUpdates ?? []) {
    lines.push(...questionAssertions(last.name, requests));
    const [verb, parts] = answering(requests, responses);
    lines.push(invocation(`${last.name} = ${last.name}.${verb}`, parts, 4));
  }
  if (call.task?.status === "cancelled") lines.push(`    ${last.name} = ${last.name}.cancel()`);
  return [...lines, ...taskAssertions(last.name, call.task)];
}

function canonical(value) {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((name) => `${name}:${canonical(value[name])}`)
    .join()}}`;
}
