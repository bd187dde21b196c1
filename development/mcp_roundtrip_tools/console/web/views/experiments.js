// Experiments with a round: send it again, with an older state, with a damaged one, as another client or user, or to
// another version of the function.

import { element, fill, icon, uniqueId } from "../dom.js";
import { stateOf } from "../calls.js";
import { summary } from "../mcp/profile.js";
import { count } from "../format.js";
import { awaitNews } from "../news.js";
import { sourceEditor } from "./source_editor.js";

/** Return the panel of experiments of a round. Each appends a round to the call, as a branch that leaves its state as it is. */
export function experimentsPanel(context, call, round) {
  const result = element("p", { class: "hint", role: "status" });
  const send = async (experiment, options, note = "") => {
    fill(result, note);
    const { answers, profile, arguments: given } = round;
    const sent = { answers, profile, arguments: given, requestState: receivedState(round) };
    await context.calls.sendRound(call, { ...sent, experiment, ...options });
  };
  return element(
    "div",
    { class: "experiments" },
    resend(call, round, send),
    older(call, round, send),
    damage(context, round, send, result),
    caller(context, round, send),
    version(context, call, send),
    result,
  );
}

const receivedState = (round) => round.request?.body?.params?.requestState;

function experiment(title, explanation, ...controls) {
  return element(
    "section",
    { class: "experiment" },
    element("div", {}, element("h3", {}, title), element("p", { class: "hint" }, explanation)),
    controls.some(Boolean) && element("div", { class: "actions" }, controls),
  );
}

function button(label, onclick) {
  return element("button", { type: "button", onclick }, label);
}

function resend(call, { experiment: before }, send) {
  const mark = ["other user", "other client"].includes(before) ? before : "resent"; // it is sent by the same client again
  const expected = call.taskId
    ? "The call has become a task, and each of its states leads to that task."
    : "The server does not remember the first time.";
  return experiment(
    "Send this round again",
    `The same state and answers, as a client does whose response was lost. ${expected}`,
    button("Send again", () => send(mark, {})),
  );
}

function older(call, round, send) {
  const rounds = call.rounds.filter((each) => stateOf(each) !== null && stateOf(each) !== receivedState(round));
  if (rounds.length === 0) return null;
  const id = uniqueId("state");
  const select = element(
    "select",
    { id, class: "input" },
    rounds.map((each) => element("option", { value: each.number }, `round ${each.number}`)),
  );
  return experiment(
    "Send another state of this call",
    "The answers of this round with the state that another round returned.",
    element("label", { for: id }, "State of"),
    select,
    button("Send", () => send("older state", { requestState: stateOf(rounds[select.selectedIndex]) })),
  );
}

function damage({ api }, round, send, result) {
  const token = receivedState(round) ?? stateOf(round);
  if (token === undefined || token === null) return null;
  const id = uniqueId("position");
  const input = element("input", {
    id,
    class: "input narrow",
    type: "number",
    min: 0,
    max: token.length - 1,
    placeholder: "middle",
  });
  async function run() {
    awaitNews();
    delete result.dataset.news;
    const position = input.value === "" ? undefined : Number(input.value);
    try {
      const changed = await api.damageState(token, position);
      const { before, after, part } = changed;
      const note = `Character ${changed.position} (${part ?? "a dot"}) was changed from “${before}” to “${after}”.`;
      await send("damaged state", { requestState: changed.requestState }, note);
    } catch (error) {
      fill(result, error.message);
      result.dataset.news = error.message;
    }
  }
  return experiment(
    "Change a byte of the state",
    `One of its ${count(token.length, "character")}. The server must refuse the round, and does not say why.`,
    element("label", { for: id }, "Position"),
    input,
    button("Change and send", run),
  );
}

/** Send the round as another user, or as the client of the page "Client". */
function caller({ store }, round, send) {
  const { application, profile } = store.state;
  const users = (application?.users ?? []).map(({ name }) => name).filter((name) => name !== round.profile.user);
  const isOther = JSON.stringify(profile) !== JSON.stringify(round.profile);
  if (users.length === 0 && !isOther) {
    return experiment("Be another client or user", [
      "Change what the client declares, its version or its user on the page ",
      element("a", { href: "#/client" }, "Client"),
      "; then this round can be sent as that client.",
    ]);
  }
  const as = (user) => send("other user", { profile: { ...round.profile, user, scopes: null } });
  return experiment(
    "Be another client or user",
    "A state belongs to the caller who received it.",
    users.map((user) => button(`Send as ${user}`, () => as(user))),
    isOther && button(`Send as ${summary(profile)}`, () => send("other client", { profile })),
  );
}

/** Edit the sources of the function that owns the feature; the next invocation runs them. */
function version(context, call, send) {
  const { application } = context.store.state;
  const id = call.feature?.uriTemplate ?? call.name;
  const owner = application?.owners?.[id] ?? application?.defaultOwner ?? null;
  if (owner === null) return null;
  const place = element("div", { class: "wide" });
  const open = element("button", { type: "button", "aria-expanded": "false", onclick: toggle }, icon("chevron"), `Edit ${owner}`);
  function toggle() {
    const isOpen = place.hasChildNodes();
    open.setAttribute("aria-expanded", String(!isOpen));
    fill(place, isOpen ? null : sourceEditor(context, owner));
  }
  return experiment(
    "Deploy another version between two rounds",
    "Edited copies of the function's files run from the next invocation on. The files of the project stay as they are.",
    open,
    button("Send this round to the version that runs now", () => send("other version", {})),
    place,
  );
}
