// The questions of a round as forms: elicitation, pages to open, sampling answered by hand, roots.

import { button, h, icon, textField, uniqueId, visible } from "../dom.js";
import { makeChoice, makeForm, webAddress } from "../form.js";
import { questionsOf } from "../rounds.js";
import { jsonEditor, labelOf } from "./arguments.js";
import { jsonView, textView } from "./json_view.js";

/**
 * Return the form for questions.
 * @param {{requests: Object, roots: Object[], send: (answers: Object, roots?: Object[]) => void}} options  requests by key
 */
export function questionForm({ requests, roots, send }) {
  const isSingle = Object.keys(requests).length === 1;
  const sections = Object.entries(requests).map(([key, request]) => ({ key, ...section(key, request, isSingle, roots) }));
  const [only] = sections;
  const refuse = (action) => button(capitalized(action), () => send({ [only.key]: { action } }));
  const submit = h("button.primary", { type: "submit" }, isSingle ? only.submitLabel : "Send the answers");
  const refusals = isSingle && only.canRefuse && ["decline", "cancel"].map(refuse);

  function onsubmit(event) {
    event.preventDefault();
    const answers = {};
    for (const { key, read, focus } of sections) {
      answers[key] = read();
      if (answers[key] === null) return focus();
    }
    send(answers, Object.values(answers).find((answer) => answer.roots)?.roots);
  }

  const nodes = sections.map(({ node }) => node);
  return h("form.questions", { novalidate: true, onsubmit }, nodes, h("div.actions", submit, refusals));
}

const capitalized = (text) => text[0].toUpperCase() + text.slice(1);

/** Return the node of a question; `read` returns the answer, or null after it has marked what is wrong. */
function section(key, { method, params = {} }, isSingle, roots) {
  if (method === "elicitation/create") return elicitation(key, params, isSingle);
  if (method === "sampling/createMessage") return sampling(key, params);
  if (method === "roots/list") return rootsQuestion(key, roots);
  return anything(key, method, params);
}

function frame(key, kind, message, ...children) {
  const id = uniqueId("question");
  return h("section.question", { "aria-labelledby": (kind || message) && id },
    kind && h("p.question-kind", { id: message ? null : id }, icon("asked"), kind, h("code", key)),
    message && h("p.question-message", { id, dir: "auto" }, message),
    children);
}

// -- elicitation --------------------------------------------------------------------------------------------------------

function elicitation(key, params, isSingle) {
  const isPage = params.mode === "url" || params.url !== undefined;
  const { url, requestedSchema = {}, message: asked = "" } = params;
  const body = isPage ? page(url) : makeForm(requestedSchema, { message: visible(asked), labelOf });
  const refusal = isSingle ? null : refusalChoice((action) => { body.node.hidden = action !== "accept"; });
  const message = body.hasMessage ? null : asked;
  const kind = isPage ? "Page to open" : isSingle ? null : "Question";
  return {
    canRefuse: true, submitLabel: isPage ? "Continue" : "Accept", focus: body.focus,
    node: frame(key, kind, message, body.node, refusal?.node),
    read() {
      const action = refusal?.value() ?? "accept";
      const content = action === "accept" && body.read();
      return content === null ? null : { action, ...(content && !isPage && { content }) };
    },
  };
}

function page(url) {
  const address = webAddress(url);
  const link = address === null
    ? h("p.error", "This address is no web page, so it is not opened.")
    : h("a.button", { href: address, target: "_blank", rel: "noopener noreferrer" }, icon("open"), "Open the page");
  return { node: h("div.page", h("code.address", String(url)), link), focus: () => link.focus(), read: () => ({}) };
}

/** With several questions in a round, each is accepted, declined or cancelled. */
function refusalChoice(onchange) {
  const name = uniqueId("action");
  const choices = ["accept", "decline", "cancel"].map((value) => makeChoice(capitalized(value), {
    type: "radio", name, value, checked: value === "accept", onchange: () => onchange(value),
  }));
  const node = h("div.choices.inline", { role: "radiogroup", "aria-label": "Action" }, choices.map((each) => each.node));
  return { node, value: () => choices.find(({ input }) => input.checked).input.value };
}

// -- sampling, roots, and any other request -----------------------------------------------------------------------------

function sampling(key, { messages = [], systemPrompt, ...parameters }) {
  const reply = h("textarea.input.growing", { rows: 3 });
  const model = h("input.input", { type: "text", value: "by-hand", spellcheck: "false" });
  const shown = messages.map(({ role, content }) =>
    h("li", h("span.role", role), textView(textOf(content), `message of the ${role}`)));
  return {
    submitLabel: "Send the reply", focus: () => reply.focus(),
    node: frame(key, "Prompt for the client’s model", null,
      systemPrompt && h("p", h("span.role", "system"), systemPrompt), h("ol.messages", shown),
      h("details", h("summary", "Parameters"), jsonView(parameters, "parameters")),
      textField("Reply of the model", reply), textField("Model", model)),
    read() {
      const content = { type: "text", text: reply.value };
      return { role: "assistant", content, model: model.value || "by-hand", stopReason: "endTurn" };
    },
  };
}

/** Return the text of content blocks; other blocks by their type. */
export function textOf(content) {
  return [content].flat().map((block) => block?.text ?? `[${block?.type}]`).join("\n");
}

/** The roots that the client exposes, one in each line: a URI, and its name if it has one. */
function rootsQuestion(key, roots) {
  const lines = roots.map(({ uri, name }) => [uri, name].filter(Boolean).join(" ")).join("\n");
  const placeholder = "file:///home/ada/engine engine";
  const text = h("textarea.input.growing", { rows: 2, value: lines, spellcheck: "false", placeholder });
  const rootOf = ([, uri, name]) => ({ uri, ...(name && { name }) });
  return {
    submitLabel: "Send the roots", focus: () => text.focus(),
    node: frame(key, "Roots of the client", "The tool asks which folders it may see.", textField("One root a line", text)),
    read: () => ({ roots: [...text.value.matchAll(/^\s*(\S+)[^\S\n]*(.*?)\s*$/gm)].map(rootOf) }),
  };
}

function anything(key, method, params) {
  const editor = jsonEditor("Answer in JSON", "{}");
  const node = frame(key, method, params.message, jsonView(params, "parameters"), editor.node);
  return { submitLabel: "Send", node, focus: editor.focus, read: editor.read };
}

// -- answers that were given ----------------------------------------------------------------------------------------------

/** Return the answers that were given to a round, as a list to read. */
export function givenAnswers(round, answers) {
  const requests = questionsOf(round);
  return h("dl.given", Object.entries(answers).map(([key, answer]) => [
    h("dt", { dir: "auto" }, requests[key]?.params?.message ?? key), h("dd", { dir: "auto" }, describeAnswer(answer)),
  ]));
}

/** Return an answer in one line. */
export function describeAnswer(answer) {
  const { action, content, roots, role } = answer;
  if (action === "decline" || action === "cancel") return { decline: "declined", cancel: "cancelled" }[action];
  if (roots) return roots.map((root) => root.uri).join(", ") || "no roots";
  if (role) return textOf(content);
  const values = Object.entries((action ? content : answer) ?? {});
  const words = { true: "yes", false: "no" };
  const texts = values.map(([name, value]) => {
    const text = typeof value === "string" ? value : words[value] ?? JSON.stringify(value);
    return values.length === 1 ? text : `${name}: ${text}`;
  });
  return texts.join(" · ") || "accepted";
}
