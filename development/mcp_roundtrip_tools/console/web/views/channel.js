// A question that came in another way than as an input request: on the question page, as a page to open, or as a text
// for the model. The next call with the same arguments continues.

import { element, icon, webAddress } from "../dom.js";
import { continuedArguments, withModelAnswers } from "../mcp/channels.js";
import { questionForm } from "./question.js";

const TITLES = {
  page: "The question is on a page",
  url: "The client has to open a page",
  model: "The model has to ask the user",
  app: "The question is in a view (MCP App)",
  wait: "The call waits, and continues when it is called again",
};
const HINTS = {
  page: "This client shows no questions, so the result names a link for the user.",
  url: "Error -32042 names the pages that the user has to visit before the call is repeated.",
  model: "The result tells the model what to ask. Here, you are the model: the answers go into the next call’s arguments.",
  app: "The console shows no views. Answer in a client that does, or declare forms on the page “Client”.",
  wait: "Nothing is asked at the moment.",
};

/** Return what a client's user and model do next after a response with this channel. */
export function channelView({ calls }, call, round, channel) {
  const given = continuedArguments(round.arguments, round.response?.body);
  const again = () => calls.sendRound(call, { after: round, arguments: given });
  return element(
    "section",
    { class: "question", "aria-label": TITLES[channel.channel] },
    element("p", { class: "question-kind" }, icon("asked"), TITLES[channel.channel]),
    element("p", { class: "hint" }, HINTS[channel.channel]),
    linksOf(channel).map(({ url, message }) => pageLink(url, message)),
    channel.channel === "model"
      ? modelForm(calls, call, round, given, channel.requests)
      : element(
          "div",
          { class: "actions" },
          element("button", { type: "button", class: "primary", onclick: again }, "Call again with the same arguments"),
        ),
  );
}

function linksOf({ url, elicitations = [] }) {
  return url === undefined ? elicitations : [{ url, message: "" }];
}

function pageLink(url, message) {
  const address = webAddress(url);
  return element(
    "div",
    { class: "page" },
    message && element("p", { class: "question-message", dir: "auto" }, message),
    element("code", { class: "address" }, url),
    address &&
      element(
        "a",
        { class: "button", href: address, target: "_blank", rel: "noopener noreferrer" },
        icon("open"),
        "Open the page",
      ),
  );
}

/** Show the questions of the text as forms, and pass the answers on as a model does. */
function modelForm(calls, call, after, given, requests) {
  const round = { durationMs: 0, response: { body: { result: { resultType: "input_required", inputRequests: requests } } } };
  return questionForm({
    round,
    roots: [],
    send(answers) {
      calls.sendRound(call, { after, arguments: withModelAnswers(given, answers) });
    },
  }).node;
}
