// Experiments with a round: send it again, with another state, with a damaged one, as another client or user, or to
// another version of the function.

import { button, h, uniqueId } from "../dom.js";
import { stateOf } from "../rounds.js";
import { count, sameJson } from "../format.js";
import { summary } from "../mcp/profile.js";
import { explained } from "../words.js";

/** Return the panel of experiments of a round. Each appends a round to the call, as a branch that leaves it as it is. */
export function experimentsPanel(context, call, round) {
  const send = async (experiment, options = {}) => {
    const { answers, profile, arguments: given } = round;
    const sent = { answers, profile, arguments: given, requestState: round.sentState ?? undefined };
    await context.calls.sendRound(call, { ...sent, experiment, ...options });
  };
  return h("div.experiments",
    resend(call, round, send), older(call, round, send), damage(round, send),
    caller(context, round, send), version(context, call, send));
}

function experiment(title, explanation, ...controls) {
  return h("section",
    h("div", h("h3", title), h("p.hint", explanation)), controls.some(Boolean) && h("div.actions", controls));
}

function resend(call, { experiment: before }, send) {
  const name = ["other user", "other client"].includes(before) ? before : "resent"; // it is sent by the same client again
  const expected = call.taskId
    ? "The call has become a task, and each of its states leads to that task."
    : "The server does not remember the first time.";
  return experiment("Send this round again",
    ["The same ", explained("state"), ` and answers, as a client does whose response was lost. ${expected}`],
    button("Send again", () => send(name)));
}

function older(call, round, send) {
  const rounds = call.rounds.filter((each) => stateOf(each) !== null && stateOf(each) !== round.sentState);
  if (rounds.length === 0) return null;
  const id = uniqueId("state");
  const select = h("select.input", { id }, rounds.map((each) => h("option", `round ${each.number}`)));
  return experiment("Send another state of this call",
    "The answers of this round with the state that another round returned.",
    h("label", { for: id }, "State of"), select,
    button("Send", () => send("older state", { requestState: stateOf(rounds[select.selectedIndex]) })));
}

function damage(round, send) {
  const state = round.sentState ?? stateOf(round);
  if (state === null) return null;
  // The longest part has the content.
  const longest = state.split(".").reduce((one, other) => (other.length > one.length ? other : one));
  const at = state.indexOf(longest) + Math.floor(longest.length / 2);
  // In the alphabet of Base64url, so that the server does not refuse the state for its spelling.
  const requestState = state.slice(0, at) + (state[at] === "A" ? "B" : "A") + state.slice(at + 1);
  return experiment("Change a byte of the state",
    `One of its ${count(state.length, "character")}. The server must refuse the round, and does not say why.`,
    button("Change and send", () => send("damaged state", { requestState })));
}

/** Send the round as another user, or as the client of the page "Client". */
function caller({ store }, round, send) {
  const { application, profile } = store.state;
  const users = (application?.users ?? []).map(({ name }) => name).filter((name) => name !== round.profile.user);
  const as = (user) => send("other user", { profile: { ...round.profile, user, scopes: null } });
  const isOther = !sameJson(profile, round.profile);
  const advice = [
    "Change what the client declares, its version or its user on the page ", h("a", { href: "#/client" }, "Client"),
    "; then this round can be sent as that client.",
  ];
  return experiment("Be another client or user",
    users.length > 0 || isOther ? "A state belongs to the caller who received it." : advice,
    users.map((user) => button(`Send as ${user}`, () => as(user))),
    isOther && button(`Send as ${summary(profile)}`, () => send("other client", { profile })));
}

/** `make run` restarts a function whose file was saved, as a deployment between two rounds replaces it. */
function version({ store }, call, send) {
  const { owners, defaultOwner, functions = [] } = store.state.application ?? {};
  const owner = owners?.[call.feature?.uriTemplate ?? call.name] ?? defaultOwner;
  const file = functions.find(({ name }) => name === owner)?.file;
  if (!file) return null;
  return experiment("Deploy another version between two rounds",
    ["Change ", h("code", file), " in your editor: within a second after it is saved, the next round runs it."],
    button("Send this round to the version that runs now", () => send("other version")));
}
