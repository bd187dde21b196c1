// An editor for the roots that the client exposes: URI and name of each.

import { element, icon } from "../dom.js";

/** @returns {{node: HTMLElement, read: () => {uri: string, name?: string}[], focus: () => void}} */
export function rootsEditor(roots) {
  const rows = element("ol", { class: "items roots" });
  for (const root of roots) add(root);
  const more = element("button", { type: "button", class: "quiet add", onclick: () => add({ uri: "" }).focus() },
    icon("plus"), "Add a root");

  function add({ uri, name }) {
    const first = field("URI", uri, "file:///home/ada/engine");
    const remove = element("button", {
      type: "button", class: "quiet", "aria-label": `Remove ${uri || "this root"}`, title: "Remove",
      onclick: () => { row.remove(); more.focus(); },
    }, icon("cross"));
    const row = element("li", {}, first, field("Name", name ?? "", "name"), remove);
    rows.append(row);
    return first;
  }

  function field(label, value, placeholder) {
    return element("input", { class: "input", type: "text", "aria-label": label, value, placeholder, spellcheck: "false" });
  }

  return {
    node: element("div", {}, rows, more),
    focus: () => (rows.querySelector("input") ?? more).focus(),
    read: () => [...rows.children].map((row) => [...row.querySelectorAll("input")].map((each) => each.value.trim()))
      .filter(([uri]) => uri !== "")
      .map(([uri, name]) => (name === "" ? { uri } : { uri, name })),
  };
}
