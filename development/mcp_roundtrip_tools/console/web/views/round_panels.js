// What a round's card shows on demand: the raw messages, the server's part, the journal, experiments, copies.

import { element, fill, uniqueId } from "../dom.js";
import { copyPanel } from "./copy.js";
import { experimentsPanel } from "./experiments.js";
import { journalPanel } from "./journal.js";
import { jsonView } from "./json_view.js";
import { serverView } from "./server.js";

const PANELS = [
  { label: "Request", isReady: (round) => round.request !== null, render: (context, call, round) => message(round.request) },
  { label: "Response", isReady: (round) => round.response !== null, render: (context, call, round) => message(round.response) },
  { label: "Server", isReady: (round) => round.exchange !== null, render: (context, call, round) => serverView(round.exchange) },
  { label: "Journal", isReady: (round) => round.state !== null, render: (context, call, round) => journalPanel(round) },
  { label: "Experiments", isReady: (round) => round.request !== null, render: experimentsPanel },
  { label: "Copy as", isReady: (round) => round.response !== null, render: copyPanel },
];

/** Return the buttons of a round's panels, of which at most one is open below them. */
export function roundPanels(context, call, round) {
  const place = element("div", { class: "panel", id: uniqueId("panel"), hidden: true });
  const buttons = PANELS.map((panel) =>
    element("button", { type: "button", class: "tab", "aria-controls": place.id, onclick: () => toggle(panel) }, panel.label));
  const node = element("div", {}, element("div", { class: "panel-bar" }, buttons), place);
  let open = null;

  function toggle(panel) {
    open = open === panel ? null : panel;
    place.hidden = open === null;
    fill(place, open?.render(context, call, round));
    update();
    if (open !== null) node.scrollIntoView({ block: "nearest" }); // the button may be at the lower edge of the window
  }

  function update() {
    for (const [index, panel] of PANELS.entries()) {
      buttons[index].hidden = !panel.isReady(round);
      buttons[index].setAttribute("aria-expanded", String(panel === open));
    }
  }

  return { node, update };
}

function message({ url, status, headers, body, notifications = [] }) {
  const shorten = (name, value) => (name === "authorization" ? `${value.slice(0, 20)}…` : value);
  const shown = ([name, value]) => [element("dt", {}, name), element("dd", {}, shorten(name, value))];
  return [
    element("p", { class: "start-line" }, url ? `POST ${url}` : `HTTP ${status}`),
    element("dl", { class: "headers" }, Object.entries(headers).map(shown)),
    notifications.map((each) => jsonView(each, { label: "notification" })),
    jsonView(body, { label: url ? "request body" : "response body" }),
  ];
}
