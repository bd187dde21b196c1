// Reads what was sent and received in a call, for the texts of "copy as". Everything comes from the wire.

const ENGINE_MEMBERS = new Set(["_meta", "inputResponses", "requestState"]);

/** The body of a round's request as an object. */
export function requestOf(round) {
  const { body } = round.request;
  return typeof body === "string" ? JSON.parse(body) : body;
}

/** The JSON-RPC response of a round; `{}` if there was none. */
export function responseOf(round) {
  const body = round.response?.body;
  return typeof body === "object" && body !== null ? body : {};
}

/** The parameters that every round of the call repeats. */
export function paramsOf(round) {
  const params = requestOf(round).params ?? {};
  return Object.fromEntries(Object.entries(params).filter(([name]) => !ENGINE_MEMBERS.has(name)));
}

/** The protocol version and the capabilities that a round's request declares. */
export function profileOf(round) {
  const meta = requestOf(round).params?._meta ?? {};
  const version =
    meta["io.modelcontextprotocol/protocolVersion"] ?? round.request.headers["mcp-protocol-version"] ?? "2025-11-25";
  return { protocolVersion: version, capabilities: meta["io.modelcontextprotocol/clientCapabilities"] ?? {} };
}

/** The questions that a round asks, by key. */
export function questionsOf(round) {
  return responseOf(round).result?.inputRequests ?? {};
}

/** The answers that a round's request carries, by key. */
export function answersOf(round) {
  return requestOf(round).params?.inputResponses ?? {};
}

/** The state that a round's request carries. */
export function receivedState(round) {
  return requestOf(round).params?.requestState;
}

/** The state that a round's response returns. */
export function returnedState(round) {
  return responseOf(round).result?.requestState;
}

/** The rounds that had an HTTP request: a round that could not be sent is left out. */
export function sentRounds(call) {
  return call.rounds.filter((round) => round.request?.body !== undefined);
}

/** The rounds of the call as its client played it, without experiments and what continues these. */
export function playedRounds(call) {
  return sentRounds(call).filter((round) => round.branch === undefined);
}

/**
 * Pair each answer with its question, in the order of the call: those of rounds, then those of the task.
 * @returns {Array<{key: string, question: object, answer: *}>}
 */
export function answeredQuestions(call) {
  const found = [];
  let asked = {};
  for (const round of playedRounds(call)) {
    found.push(...pairs(asked, answersOf(round)));
    asked = { ...asked, ...questionsOf(round) };
  }
  for (const { requests, responses } of call.taskUpdates ?? []) found.push(...pairs(requests, responses));
  return found;
}

function pairs(asked, answers) {
  return Object.entries(answers)
    .filter(([key]) => key in asked)
    .map(([key, answer]) => ({ key, question: asked[key], answer }));
}

/** The bearer token of a round; undefined if it has none. */
export function tokenOf(round) {
  const header = Object.entries(round.request.headers ?? {}).find(([name]) => name.toLowerCase() === "authorization");
  return header?.[1].replace(/^Bearer /i, "");
}
