// Writes one round as a curl command: the request exactly as it was sent.

import { escapeUnsafe } from "./unsafe.js";

/** Headers that the console adds for its own server, or that curl writes itself. */
const OWN_HEADERS = new Set(["x-console", "content-length", "host"]);

/**
 * Return a command for a POSIX shell. The body is read from the standard input, because a state may be longer than an
 * argument may be. It is JSON in one line, so no line of it can end the here-document. Characters that a terminal or an
 * interactive shell (zsh: the history with !) would interpret are escaped in it.
 * @param {object} round
 */
export function curl(round) {
  const { url, headers, body } = round.request;
  const sent = escapeUnsafe(typeof body === "string" ? body.replace(/[\r\n]+/g, " ") : JSON.stringify(body), "!");
  const options = Object.entries(headers ?? {})
    .filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()))
    .map(([name, value]) => `--header ${quoted(escapeUnsafe(`${name}: ${value}`))}`);
  const words = [`curl --silent --show-error ${quoted(url)}`, ...options, "--data-binary @- <<'EOF'"];
  return `${words.join(" \\\n  ")}\n${sent}\nEOF\n`;
}

/** Return a word of a shell. */
function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
