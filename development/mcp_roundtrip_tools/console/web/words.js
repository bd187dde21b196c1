// What words of this project, and of AWS, mean on the pages of the console.

import { h } from "./dom.js";

const MEANINGS = {
  "round": "One request of a call, and its response. A call that asks has several rounds.",
  "asked": "A question of this round, which waits for its answer.",
  "answered": "An answer that this round received and accepted.",
  "ran": "Code that this round ran, and whose result it recorded.",
  "replayed": "A result that the round found in the state or in the table: the code did not run again.",
  "continues": "The server ran out of time, and saved its progress in the state. The client sends the next round at once.",
  "became a task": "The call continues without its client: its journal is in the task table, and workers run it.",
  "front door": "The public endpoint: it lists the features of all functions, and forwards calls to them.",
  "state": "The requestState of MCP: it carries the journal, and the client sends it with the next round.",
  "journal": "What the call has asked, been answered and run so far. The state carries it from round to round.",
  "environment": "The execution environment of Lambda: the process that ran the function.",
  "new": "Lambda had to start the process (a cold start).",
  "warm": "The process had run before.",
  "KMS": "Calls to AWS Key Management Service, which protects the state. Each costs money and some milliseconds.",
  "DynamoDB": "Calls to the table of tasks.",
  "S3": "Calls to the bucket of large results.",
  "SQS": "Calls to the queue of workers.",
  "worker": "An invocation of Lambda that runs the task. If it is lost, another one replays the journal and continues.",
  "lost": "The process of the worker ended before its work was done, as when its computer fails.",
  "lease": "The right of one worker to run the task, which it renews. Before it ends, a lost worker looks like a slow one.",
  "Flow": "The id of the whole call, over all rounds and its task. It is in the log lines of the functions.",
  "Bound to": "The server refuses the state from another caller, for another tool, or with other arguments.",
  "Time to live ends": "The table may forget the task after this time.",
  "Unused answers": "Answers of the request to questions that the state does not list. They do not count.",
  "experiment": "A branch: the call above keeps its state, its answers and its task.",
};

/** Return a word with its meaning, which the pointer shows; or another text in place of the word. */
export function explained(word, text = word) {
  return h("span", { class: MEANINGS[word] && "term", title: MEANINGS[word] }, text);
}

/** Return the meaning of a word, for the attribute `title`. */
export const meaningOf = (word) => MEANINGS[word];
