// A question that came in another way than as an input request: on the question page, as a page to open, or as a text
// for the model. The next call with the same arguments continues.

import { button, h, icon } from "../dom.js";
import { webAddress } from "../form.js";
import { continuedArguments } from "../mcp/channels.js";

/** Channel -> what it is, and what the user does next. */
const CHANNELS = {
  page: ["The question is on a page", "This client shows no questions, so the result names a link for the user."],
  url: ["The client has to open a page", "Error -32042 names the pages to visit before the call is repeated."],
  model: ["The model has to ask the user",
    "The result tells the model what to ask. Here, you are the model: call it with input_responses (“Edit as JSON”)."],
  app: ["The question is in a view (MCP App)",
    "The console shows no views. Answer in a client that does, or declare forms on the page “Client”."],
  wait: ["The call waits, and continues when it is called again", "Nothing is asked at the moment."],
};

/** Return what a client's user and model do next after a response with this channel. */
export function channelView({ calls }, call, round, { channel, pages = [] }) {
  const given = continuedArguments(round.arguments, round.response?.body);
  const again = () => calls.sendRound(call, { after: round, arguments: given });
  const [title, hint] = CHANNELS[channel];
  return h("section.question", { "aria-label": title },
    h("p.question-kind", icon("asked"), title), h("p.hint", hint), pages.map(pageLink),
    h("div.actions", button("Call again with the same arguments", again, { class: "primary" })));
}

function pageLink({ url, message }) {
  const href = webAddress(url);
  return h("div.page", message && h("p.question-message", { dir: "auto" }, message), h("code.address", url),
    href && h("a.button", { href, target: "_blank", rel: "noopener noreferrer" }, icon("open"), "Open the page"));
}
