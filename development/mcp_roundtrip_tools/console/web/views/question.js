// The questions of a round as forms: elicitation, pages to open, sampling answered by hand, roots.

import { element, fill, icon, uniqueId, webAddress } from "../dom.js";
import { questionsOf } from "../calls.js";
import { schemaFields } from "./form.js";
import { parseJson } from "./fields.js";
import { jsonView, textView } from "./json_view.js";
import { rootsEditor } from "./roots.js";

/**
 * Return the form for all questions of a round.
 * @param {{round: Round, roots: Object[], send: (answers: Object, roots: Object[]|null) => void}} options
 * @returns {{node: HTMLElement, focus: () => void}}
 */
export function questionForm({ round, roots, send }) {
  const requests = Object.entries(questionsOf(round));
  const isSingle = requests.length === 1;
  const sections = requests.map(([key, request]) => section(key, request, { isSingle, roots }));
  const [only] = sections;
  const form = element("form", { class: "questions", novalidate: true, onsubmit: submit },
    sections.map((each) => each.node),
    element("div", { class: "actions" },
      element("button", { type: "submit", class: "primary" }, isSingle ? only.submitLabel : "Send the answers"),
      isSingle && only.canRefuse && ["decline", "cancel"].map((action) =>
        element("button", { type: "button", onclick: () => send({ [only.key]: { action } }, null) }, capitalized(action)))));

  function submit(event) {
    event.preventDefault();
    const answers = {};
    for (const each of sections) {
      const answer = each.read();
      if (answer === null) return;
      answers[each.key] = answer;
    }
    send(answers, sections.find((each) => each.roots)?.roots() ?? null);
  }

  return { node: form, focus: () => sections[0]?.focus() };
}

const capitalized = (text) => text[0].toUpperCase() + text.slice(1);

function section(key, { method, params = {} }, options) {
  if (method === "elicitation/create") return elicitation(key, params, options);
  if (method === "sampling/createMessage") return sampling(key, params);
  if (method === "roots/list") return roots(key, options.roots);
  return anything(key, method, params);
}

function frame(key, kind, message, ...children) {
  const id = uniqueId("question");
  return element("section", { class: "question", "aria-labelledby": id },
    kind && element("p", { class: "question-kind" }, icon("asked"), kind, element("code", {}, key)),
    message && element("p", { class: "question-message", id, dir: "auto" }, message),
    !message && element("span", { id, hidden: true }, kind),
    children);
}

// -- elicitation ------------------------------------------------------------------------------------------------------

function elicitation(key, params, { isSingle }) {
  const body = params.mode === "url" || params.url !== undefined ? page(params) : fieldsOf(params, isSingle);
  const refusal = isSingle ? null : refusalChoice();
  const sync = () => { body.node.hidden = refusal.value() !== "accept"; };
  refusal?.node.addEventListener("change", sync);
  return {
    key, canRefuse: true, submitLabel: body.submitLabel, focus: body.focus,
    node: frame(key, body.kind, params.message, body.node, refusal?.node),
    read() {
      const action = refusal?.value() ?? "accept";
      if (action !== "accept") return { action };
      const content = body.read();
      return content === null ? null : { action, ...content };
    },
  };
}

function fieldsOf(params, isSingle) {
  const schema = params.requestedSchema ?? {};
  // A question for a single value has a field of this name, which says nothing.
  const isLone = Object.keys(schema.properties ?? {}).join() === "value";
  const fields = schemaFields(schema, isLone ? { loneLabel: params.message } : {});
  return {
    kind: isSingle ? null : "Question", node: fields.node, focus: fields.focus, submitLabel: "Accept",
    read() {
      const content = fields.read();
      return content === null ? null : { content };
    },
  };
}

function page(params) {
  const address = webAddress(params.url);
  const link = address === null
    ? element("p", { class: "error" }, "This address is no web page, so it is not opened.")
    : element("a", { class: "button", href: address, target: "_blank", rel: "noopener noreferrer" },
      icon("open"), "Open the page");
  return {
    kind: "Page to open", submitLabel: "Continue", focus: () => (address === null ? null : link.focus()),
    node: element("div", { class: "page" }, element("code", { class: "address" }, String(params.url)), link),
    read: () => ({}),
  };
}

/** With several questions in a round, each is accepted, declined or cancelled. */
function refusalChoice() {
  const name = uniqueId("action");
  const inputs = ["accept", "decline", "cancel"].map((value) =>
    element("input", { type: "radio", name, value, checked: value === "accept" }));
  return {
    node: element("div", { class: "choices inline", role: "radiogroup", "aria-label": "Action" },
      inputs.map((input) => element("label", { class: "option" }, input, element("span", {}, capitalized(input.value))))),
    value: () => inputs.find((input) => input.checked).value,
  };
}

// -- sampling, roots, and any other request -----------------------------------------------------------------------------

function sampling(key, params) {
  const [textId, modelId] = [uniqueId("reply"), uniqueId("model")];
  const reply = element("textarea", { id: textId, class: "input growing", rows: 3 });
  const model = element("input", { id: modelId, class: "input", type: "text", value: "by-hand", spellcheck: "false" });
  const messages = (params.messages ?? []).map(({ role, content }) =>
    element("li", {}, element("span", { class: "role" }, role), textView(textOf(content), `message of the ${role}`)));
  const { messages: shown, systemPrompt, ...rest } = params;
  return {
    key, canRefuse: false, submitLabel: "Send the reply", focus: () => reply.focus(),
    node: frame(key, "Prompt for the client’s model", null,
      systemPrompt && element("p", { class: "system-prompt" }, element("span", { class: "role" }, "system"), systemPrompt),
      element("ol", { class: "messages" }, messages),
      element("details", {}, element("summary", {}, "Parameters"), jsonView(rest, { label: "parameters" })),
      element("div", { class: "field" }, element("label", { for: textId, class: "label-name" }, "Reply of the model"), reply),
      element("div", { class: "field" }, element("label", { for: modelId, class: "label-name" }, "Model"), model)),
    read: () => ({
      role: "assistant", content: { type: "text", text: reply.value }, model: model.value || "by-hand", stopReason: "endTurn",
    }),
  };
}

/** Return the text of content blocks; other blocks by their type. */
export function textOf(content) {
  return [content].flat().map((block) => block?.text ?? `[${block?.type}]`).join("\n");
}

function roots(key, current) {
  const editor = rootsEditor(current);
  return {
    key, canRefuse: false, submitLabel: "Send the roots", focus: editor.focus, roots: editor.read,
    node: frame(key, "Roots of the client", "The tool asks which folders it may see.", editor.node),
    read: () => ({ roots: editor.read() }),
  };
}

function anything(key, method, params) {
  const [id, error] = [uniqueId("answer"), element("p", { class: "error", hidden: true })];
  const text = element("textarea", { id, class: "input code growing", rows: 3, value: "{}", spellcheck: "false" });
  return {
    key, canRefuse: false, submitLabel: "Send", focus: () => text.focus(),
    node: frame(key, method, params.message, jsonView(params, { label: "parameters" }),
      element("div", { class: "field" }, element("label", { for: id, class: "label-name" }, "Answer in JSON"), text, error)),
    read() {
      try {
        return parseJson(text.value);
      } catch (problem) {
        error.hidden = false;
        fill(error, problem.message);
        text.focus();
        return null;
      }
    },
  };
}

/** Return the answers that were given to a round, as a list to read. */
export function givenAnswers(round, answers) {
  const requests = questionsOf(round);
  return element("dl", { class: "given" }, Object.entries(answers).map(([key, answer]) => [
    element("dt", { dir: "auto" }, requests[key]?.params?.message ?? key),
    element("dd", { dir: "auto" }, describeAnswer(answer)),
  ]));
}

function describeAnswer(answer) {
  const refusal = { decline: "declined", cancel: "cancelled" }[answer.action];
  if (refusal) return element("span", { class: "refused" }, refusal);
  if (answer.roots) return answer.roots.map((root) => root.uri).join(", ") || "no roots";
  if (answer.role) return textOf(answer.content);
  if (answer.action && answer.content === undefined) return "accepted";
  const values = Object.entries(answer.content ?? answer);
  const texts = values.map(([name, value]) => {
    const text = typeof value === "string" ? value : value === true ? "yes" : value === false ? "no" : JSON.stringify(value);
    return values.length === 1 ? text : `${name}: ${text}`;
  });
  return texts.join(" · ") || "accepted";
}
