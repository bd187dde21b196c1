// What a round reported: progress and log notifications of the response, and what the functions logged and printed.

import { h } from "../dom.js";
import { logLinesOf } from "../exchange.js";

/** Return the log of a round. The package's records of normal requests are left out. */
export function logOf(round) {
  const notified = (round.response?.notifications ?? []).map(describeNotification);
  const logged = logLinesOf(round.exchange).filter(({ shown }) => shown !== null);
  const lines = [...notified, ...logged.map(({ level, shown }) => [level, shown])];
  return lines.length > 0 && logView(lines, `Log of round ${round.number}`);
}

/** Return a log: where each line is from, or its level, and its text. */
export function logView(lines, label) {
  return h("div.logs", { tabindex: 0, role: "region", "aria-label": label }, lines.map(([kind, text]) =>
    h("p", { class: `log-${kind}` }, h("span.log-kind", kind), h("span", { dir: "auto" }, text))));
}

function describeNotification({ method, params = {} }) {
  const kind = method.replace("notifications/", "");
  if (kind === "progress") {
    const of = params.total === undefined ? "" : ` of ${params.total}`;
    return [kind, [`${params.progress}${of}`, params.message].filter(Boolean).join(" · ")];
  }
  const data = kind === "message" ? params.data : params;
  return [params.level ?? kind, typeof data === "string" ? data : JSON.stringify(data)];
}
