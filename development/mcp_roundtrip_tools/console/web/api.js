// The console API of the local runner: what happened on the server, decoded states, tasks, experiments.

import { parseJson } from "./format.js";

/** A refused request; the message is a sentence of the server. */
export class ApiError extends Error {
  constructor(status, message, body = null) {
    super(message);
    Object.assign(this, { status, body });
  }
}

async function request(method, path, body) {
  // A page of another origin cannot send this header without a preflight, which the server refuses.
  const headers = { "x-console": "1", ...(body && { "content-type": "application/json" }) };
  const options = { method, headers, body: body && JSON.stringify(body) };
  const response = await fetch(`/console/api/${path}`, options).catch(() => {
    throw new ApiError(0, "The server does not answer. Is make run still running?");
  });
  const document = parseJson(await response.text());
  if (!response.ok) throw new ApiError(response.status, document?.message ?? `HTTP ${response.status}`, document);
  return document;
}

const segment = encodeURIComponent;

export const api = {
  application: () => request("GET", "application"),
  exchange: (id) => request("GET", `exchanges/${segment(id)}`),
  activity: (after) => request("GET", `activity?after=${after}`),
  decodeState: (requestState, before) => request("POST", "states", { requestState, before }),
  tasks: () => request("GET", "tasks"),
  task: (id) => request("GET", `tasks/${segment(id)}`),
  expireLease: (taskId) => request("POST", `tasks/${segment(taskId)}/expire-lease`, {}),
  kill: (environmentId) => request("POST", `environments/${segment(environmentId)}/kill`, {}),
  token: (user, scopes) => request("POST", "tokens", { user, scopes }),
};
