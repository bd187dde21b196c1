// The console API of the local runner: what happened on the server, decoded states, tasks, experiments.

/** A refused request; the message is a sentence of the server. */
export class ApiError extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

async function request(method, path, body, signal) {
  const response = await fetch(`/console/api/${path}`, {
    method,
    signal,
    // A page of another origin cannot send this header without a preflight, which the server refuses.
    headers: { "x-console": "1", ...(body === undefined ? {} : { "content-type": "application/json" }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch((error) => {
    throw error instanceof TypeError ? new ApiError(0, "The server does not answer. Is make run still running?", null) : error;
  });
  const text = await response.text();
  const document = parse(text);
  if (!response.ok) throw new ApiError(response.status, document?.message ?? `HTTP ${response.status}`, document);
  return document;
}

function parse(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

const segment = encodeURIComponent;

export const api = {
  application: () => request("GET", "application"),
  exchange: (id) => request("GET", `exchanges/${segment(id)}`),
  activity: (after, waitMs, signal) => request("GET", `activity?after=${after}&waitMs=${waitMs}`, undefined, signal),
  decodeState: (requestState, before) => request("POST", "states", { requestState, before }),
  damageState: (requestState, position) => request("POST", "states/damage", { requestState, position }),
  tasks: () => request("GET", "tasks"),
  task: (id) => request("GET", `tasks/${segment(id)}`),
  expireLease: (taskId) => request("POST", `tasks/${segment(taskId)}/expire-lease`, {}),
  kill: (environmentId) => request("POST", `environments/${segment(environmentId)}/kill`, {}),
  sources: (functionName) => request("GET", `sources/${segment(functionName)}`),
  deploy: (functionName, files) => request("PUT", `sources/${segment(functionName)}`, { files }),
  undeploy: (functionName) => request("DELETE", `sources/${segment(functionName)}`, {}),
  token: (user, scopes) => request("POST", "tokens", { user, scopes }),
};
