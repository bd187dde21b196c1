// An editor for the roots that the client exposes: URI and name of each.

import { element, icon, uniqueId } from "../dom.js";

/** @returns {{node: HTMLElement, read: () => {uri: string, name?: string}[], focus: () => void}} */
export function rootsEditor(roots) {
  const rows = element("ol", { class: "items roots" });
  for (const root of roots) add(root);
  const more = element("button", { type: "button", class: "quiet add", onclick: () => add({ uri: "" }).focus() },
    icon("plus"), "Add a root");

  function add({ uri, name }) {
    const [uriId, nameId] = [uniqueId("uri"), uniqueId("name")];
    const first = element("input", { id: uriId, class: "input", type: "text", value: uri, placeholder: "file:///home/ada/engine", "aria-label": "URI", spellcheck: "false" });
    const second = element("input", { id: nameId, class: "input", type: "text", value: name ?? "", placeholder: "name", "aria-label": "Name", spellcheck: "false" });
    const row = element("li", {}, first, second, element("button", {
      type: "button", class: "quiet", "aria-label": `Remove ${uri || "this root"}`, title: "Remove", onclick: () => { row.remove(); more.focus(); },
    }, icon("cross")));
    rows.append(row);
    return first;
  }

  return {
    node: element("div", {}, rows, more),
    focus: () => (rows.querySelector("input") ?? more).focus(),
    read: () => [...rows.children].map((row) => [...row.querySelectorAll("input")].map((each) => each.value.trim()))
      .filter(([uri]) => uri !== "")
      .map(([uri, name]) => (name === "" ? { uri } : { uri, name })),
  };
}
