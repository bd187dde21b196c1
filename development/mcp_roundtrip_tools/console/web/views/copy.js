// "Copy as": a round as a curl command, its call as a Python program or as a Player test.

import { element, fill } from "../dom.js";
import { curl } from "../copy_as/curl.js";
import { player } from "../copy_as/player.js";
import { python } from "../copy_as/python.js";
import { remark } from "../copy_as/python_text.js";
import { jsonView } from "./json_view.js";

const FORMATS = [
  {
    id: "curl",
    label: "curl",
    hint: "This round, as it was sent. Its state is valid until it expires.",
    write: (call, round) => curl(round),
  },
  {
    id: "python",
    label: "Python client",
    hint: "The whole call, with the answers that were given.",
    write: (call) => python(call),
  },
  {
    id: "player",
    label: "Player test",
    hint: "A test of what was clicked, without a server.",
    write: (call, round, application) => player(call, describe(call, application)),
  },
];

/** Return the panel with the texts of a round and its call. */
export function copyPanel({ store }, call, round) {
  const place = element("div", {});
  const buttons = FORMATS.map((format) =>
    element("button", { type: "button", class: "tab", "aria-pressed": "false", onclick: () => show(format) }, format.label),
  );

  function show(format) {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(FORMATS[index] === format)));
    fill(place, element("p", { class: "hint" }, format.hint), jsonView(text(format), { label: format.label }));
  }

  function text(format) {
    try {
      return format.write(call, round, store.state.application);
    } catch (error) {
      return `# This call cannot be written as ${format.label}: ${remark(error.message)}`;
    }
  }

  show(FORMATS[0]);
  return element(
    "div",
    { class: "copy-as" },
    element("div", { class: "segments", role: "group", "aria-label": "Copy as" }, buttons),
    place,
  );
}

/** Return what a Player test needs to know of the application: the file of the function that owns the feature. */
function describe(call, application) {
  const id = call.feature?.uriTemplate ?? call.name;
  const functions = application?.functions ?? [];
  const owner = application?.owners?.[id] ?? application?.owners?.[call.name] ?? application?.defaultOwner;
  const found = functions.find(({ name }) => name === owner) ?? functions.find(({ kind }) => kind === "tool") ?? functions[0];
  return { file: found?.file ?? "app.py", template: application?.template, hasStandIns: application?.hasStandIns };
}
