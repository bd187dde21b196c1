// Writes the assertions of a Player test: the questions and the result that the console received.

import { literal, Source, text } from "./python_text.js";
import { questionsOf, requestOf, responseOf } from "./recorded_call.js";
import { isVolatile, stablePart, withoutVolatile } from "./volatile.js";

const ANY = new Source("ANY");

/** The text of a tool that raised an unexpected exception. It names the request, so it differs in each run. */
const INTERNAL = /^The \w+ failed\. Quote /;

/** Return the assertions about a round that is held by a variable. */
export function assertions(name, round) {
  const { result, error } = responseOf(round);
  if (error !== undefined) return [`    assert ${name}.error["code"] == ${literal(error.code)}`];
  if (result === undefined) return ["    # The console received no response to this round."];
  if (result.resultType === "input_required") return questionAssertions(name, questionsOf(round));
  return resultAssertions(name, result, requestOf(round).method);
}

/** Return the assertions about the questions that a round or a task asks. */
export function questionAssertions(name, requests) {
  return Object.entries(requests).map(([key, { method, params }]) => {
    if (method !== "elicitation/create") return `    assert ${text(key)} in ${name}.asked`;
    const question = `${name}.question(${text(key)})`;
    if (!isVolatile(params.message)) return `    assert ${question} == ${text(params.message)}`;
    return `    assert ${text(stablePart(params.message))} in ${question}`;
  });
}

/** Return the assertions about a task after its last poll. */
export function taskAssertions(name, task) {
  if (task === undefined) return [];
  if (task.status === "completed") return resultAssertions(name, task.result ?? {}, "tools/call");
  const asked = questionAssertions(name, task.inputRequests ?? {});
  return asked.length > 0 ? asked : [`    assert ${name}.status == ${text(task.status)}`];
}

function resultAssertions(name, result, method) {
  if (method === "prompts/get") return [equals(`${name}.messages`, result.messages)];
  if (method === "resources/read") return [equals(`${name}.contents`, result.contents)];
  const texts = (result.content ?? []).filter(({ type }) => type === "text").map((block) => block.text);
  const joined = texts.join("");
  if (result.isError) return [`    assert ${name}.failed`, ...(INTERNAL.test(joined) ? [] : [textEquals(name, joined)])];
  if (result.structuredContent !== undefined) return [equals(`${name}.structured`, result.structuredContent)];
  return texts.length > 0 ? [textEquals(name, joined)] : [`    assert not ${name}.failed`];
}

function equals(expression, value) {
  const start = `    assert ${expression} == `;
  return start + literal(withoutVolatile(value, ANY), 4, start.length);
}

function textEquals(name, value) {
  return isVolatile(value)
    ? `    assert ${text(stablePart(value))} in ${name}.text`
    : `    assert ${name}.text == ${text(value)}`;
}
