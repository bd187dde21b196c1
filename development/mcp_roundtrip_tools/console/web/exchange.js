// Reads what the server recorded of a request: the tree of invocations below an HTTP exchange.

/** Return an exchange without its bodies: a round has them already, and a state can be long. */
export function withoutBodies({ requestBody, responseBody, invocations = [], ...exchange }) {
  const strip = ({ payload, response, invocations: inner, ...others }) => ({ ...others, invocations: inner.map(strip) });
  return { ...exchange, invocations: invocations.map(strip) };
}

/** Return the invocations of an exchange and those that they caused, the outer ones first. */
export function invocationsOf(exchange) {
  const flatten = (invocations = []) => invocations.flatMap((each) => [each, ...flatten(each.invocations)]);
  return flatten(exchange?.invocations);
}

/** Return the invocation that ran the tool, which is the innermost one; undefined if nothing ran. */
export const environmentOf = (exchange) => invocationsOf(exchange).at(-1);

export const SERVICES = { kms: "KMS", dynamodb: "DynamoDB", s3: "S3", sqs: "SQS", lambda: "Lambda" };

/** Return the number of calls of each AWS service, by its name. Invocations of functions are not counted. */
export function serviceCounts(exchange) {
  const names = invocationsOf(exchange).flatMap(({ serviceCalls = [] }) => serviceCalls.map(({ service }) => service));
  const counts = new Map();
  for (const name of names.filter((each) => each !== "lambda"))
    counts.set(SERVICES[name] ?? name, (counts.get(SERVICES[name] ?? name) ?? 0) + 1);
  return [...counts];
}

/** Return the lines that functions logged, in order. */
export function logLinesOf(exchange) {
  return invocationsOf(exchange)
    .flatMap(({ function: name, logLines = [] }) => logLines.map((line) => ({ ...line, function: name })))
    .sort((one, other) => one.atMs - other.atMs);
}
