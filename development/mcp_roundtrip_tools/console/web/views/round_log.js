// What a round reported: progress and log notifications of the response, and log lines of the functions.

import { element, fill } from "../dom.js";
import { logLinesOf } from "../exchange.js";
import { readLogLine } from "../log_lines.js";
import { changedQuestions } from "./changed_questions.js";

/** Return the log of a round, hidden while it is empty. The package's records of normal requests are left out. */
export function roundLog(round) {
  const label = `Log of round ${round.number}`;
  const node = element("div", { class: "logs", hidden: true, tabindex: 0, role: "region", "aria-label": label });

  function update() {
    const notified = (round.response?.notifications ?? []).map(describeNotification);
    const logged = logLinesOf(round.exchange).map((line) => readLogLine(line.text)).filter((line) => !line.isRoutine);
    const changed = changedQuestions(round.exchange ?? undefined).map((text) => ({ level: "warning", text }));
    const others = logged.filter(({ event }) => changed.length === 0 || event !== "question_changed");
    const lines = [...notified, ...others, ...changed];
    if (node.childElementCount === lines.length) return;
    node.hidden = lines.length === 0;
    fill(node, lines.map(({ level, text }) => logLine(level, text)));
  }

  return { node, update };
}

/** Return a line of a log: where it is from, or its level, and its text. */
export function logLine(kind, text) {
  return element("p", { class: `log-${kind}` },
    element("span", { class: "log-kind" }, kind), element("span", { dir: "auto" }, text));
}

function describeNotification({ method, params = {} }) {
  const kind = method.replace("notifications/", "");
  if (kind === "progress") {
    const of = params.total === undefined ? "" : ` of ${params.total}`;
    return { level: kind, text: [`${params.progress}${of}`, params.message].filter(Boolean).join(" · ") };
  }
  const data = kind === "message" ? params.data : params;
  return { level: params.level ?? kind, text: typeof data === "string" ? data : JSON.stringify(data) };
}
