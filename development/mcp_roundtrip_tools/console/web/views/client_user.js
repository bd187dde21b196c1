// The user of the client that the console plays, and the scopes of the user's token.

import { element, radioOption, uniqueId } from "../dom.js";

/** Return a card of the page: a title, a sentence, and controls. */
export function group(title, hint, ...children) {
  const id = uniqueId("group");
  return element(
    "section",
    { class: "card client-group", role: "group", "aria-labelledby": id },
    element("div", {}, element("h2", { id }, title), element("p", { class: "hint" }, hint)),
    element("div", { class: "client-controls" }, children),
  );
}

/** Return the card that chooses a user of the local issuer. */
export function userGroup(profile, application, change) {
  const users = application?.users ?? [];
  if (users.length === 0) {
    return group(
      "User",
      "Who calls.",
      element(
        "p",
        {},
        "Every caller is anonymous. Start with ",
        element("code", {}, 'make run USER="ada bob" SCOPES="weather:read"'),
        " to have users of a local issuer.",
      ),
    );
  }
  const name = uniqueId("user");
  const choose = (value, label) =>
    radioOption(name, `user ${label}`, profile.user === value, () => change({ user: value, scopes: null }), label);
  const chosen = users.find((each) => each.name === profile.user);
  return group(
    "User",
    "A token of the local issuer goes with each request.",
    element(
      "div",
      { class: "choices inline", role: "radiogroup", "aria-label": "User" },
      users.map((each) => choose(each.name, each.name)),
      choose(null, "no token"),
    ),
    chosen &&
      scopes(profile, [...new Set([...(chosen.scopes ?? []), ...(application.scopes ?? [])])], chosen.scopes ?? [], change),
  );
}

/** A token can have fewer scopes than its user, and others, so that a refusal can be seen. */
function scopes({ scopes: given }, all, own, change) {
  if (all.length === 0) return null;
  const current = given ?? own;
  return element(
    "fieldset",
    { class: "field" },
    element("legend", {}, element("span", { class: "label-name" }, "Scopes of the token")),
    all.map((scope) => {
      const input = element("input", {
        type: "checkbox",
        dataset: { control: `scope ${scope}` },
        checked: current.includes(scope),
        onchange: () => change({ scopes: input.checked ? [...current, scope] : current.filter((each) => each !== scope) }),
      });
      return element("label", { class: "option" }, input, element("code", {}, scope));
    }),
  );
}
