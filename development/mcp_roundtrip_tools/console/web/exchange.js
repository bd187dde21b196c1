// Reads what the server recorded of a request: the tree of invocations below an HTTP exchange.

/** Return an exchange without its bodies: a round has them already, and a state can be long. */
export function withoutBodies({ requestBody, responseBody, invocations = [], ...exchange }) {
  const strip = ({ payload, response, invocations: inner = [], ...others }) => ({ ...others, invocations: inner.map(strip) });
  return { ...exchange, invocations: invocations.map(strip) };
}

/** Return the invocations of an exchange and those that they caused, the outer ones first. */
export function invocationsOf(exchange) {
  const flatten = (invocations = []) => invocations.flatMap((each) => [each, ...flatten(each.invocations)]);
  return flatten(exchange?.invocations);
}

/** Return the invocation that ran the tool: the innermost one of the first branch; undefined if nothing ran. */
export function environmentOf(exchange) {
  let found = exchange?.invocations?.[0];
  while (found?.invocations?.length) found = found.invocations[0];
  return found;
}

/** Return the calls of AWS services in words, such as "2 KMS". Invocations of functions are not counted. */
export function serviceSummary(exchange) {
  const counts = new Map();
  for (const { serviceCalls = [] } of invocationsOf(exchange)) {
    for (const { service } of serviceCalls) counts.set(service, (counts.get(service) ?? 0) + 1);
  }
  counts.delete("lambda");
  return [...counts].map(([service, number]) => `${number} ${SERVICES[service] ?? service}`);
}

export const SERVICES = { kms: "KMS", dynamodb: "DynamoDB", s3: "S3", sqs: "SQS", lambda: "Lambda" };

/** Return the lines that functions logged, in order. */
export function logLinesOf(exchange) {
  return invocationsOf(exchange)
    .flatMap(({ function: name, logLines = [] }) => logLines.map((line) => ({ ...line, function: name })))
    .sort((one, other) => one.atMs - other.atMs);
}
