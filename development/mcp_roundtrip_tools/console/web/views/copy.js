// "Copy as": a round as a curl command, its call as a Python program or as a Player test.

import { button, fill, h } from "../dom.js";
import { curl } from "../copy_as/curl.js";
import { player } from "../copy_as/player.js";
import { python } from "../copy_as/python.js";
import { remark } from "../copy_as/python_text.js";
import { jsonView } from "./json_view.js";

const FORMATS = [
  { label: "curl", hint: "This round, as it was sent, until its state expires.", write: (call, round) => curl(round) },
  { label: "Python client", hint: "The whole call, with the answers that were given.", write: python },
  {
    label: "Player test", hint: "A test of the call, with the answers that were given. It needs no server.",
    write: (call, round, application) => player(call, projectOf(call, application)),
  },
];

/** Return the panel with the texts of a round and its call. */
export function copyPanel({ store }, call, round) {
  const place = h("div");
  const buttons = FORMATS.map((format) => button(format.label, () => show(format), { class: "tab" }));

  function show(format) {
    buttons.forEach((each, index) => each.setAttribute("aria-pressed", String(FORMATS[index] === format)));
    fill(place, h("p.hint", format.hint), jsonView(textOf(format), format.label));
  }

  function textOf({ write, label }) {
    try {
      return write(call, round, store.state.application);
    } catch (error) {
      return `# This call cannot be written as ${label}: ${remark(error.message)}`;
    }
  }

  show(FORMATS[0]);
  return h("div.copy-as", h("div.segments", { role: "group", "aria-label": "Copy as" }, buttons), place);
}

/** Return what a Player test needs to know of the application: the file of the function that owns the feature. */
function projectOf(call, { functions = [], owners = {}, defaultOwner, template, hasStandIns }) {
  const owner = owners[call.feature?.uriTemplate] ?? owners[call.name] ?? defaultOwner;
  const found = functions.find(({ name }) => name === owner) ?? functions.find(({ kind }) => kind === "tool");
  return { file: found?.file ?? "app.py", template, hasStandIns };
}
