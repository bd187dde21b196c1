// Writes one round as a curl command: the request exactly as it was sent.

import { escapeUnsafe } from "./python_text.js";

/**
 * Return a command for a POSIX shell. The body is read from the standard input, because a state may be longer than an
 * argument may be. It is JSON in one line, so no line of it can end the here-document. Characters that a terminal or an
 * interactive shell (zsh: the history with !) would interpret are escaped in it.
 */
export function curl({ request: { url, headers, body } }) {
  const option = ([name, value]) => `--header ${quoted(escapeUnsafe(`${name}: ${value}`))}`;
  const options = Object.entries(headers).map(option);
  const words = [`curl --silent --show-error ${quoted(url)}`, ...options, "--data-binary @- <<'EOF'"];
  return `${words.join(" \\\n  ")}\n${escapeUnsafe(JSON.stringify(body), "!")}\nEOF\n`;
}

/** Return a word of a shell. */
function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
