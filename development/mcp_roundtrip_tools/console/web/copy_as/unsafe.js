// Characters that copied texts must not contain: a terminal interprets them, or a reader cannot see them.

/** Control characters, separators of lines, and characters that are invisible or reorder the text around them. */
const UNSAFE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * Return a JSON text with such characters as escapes, which JSON and Python read alike.
 * @param {string} text
 * @param {string} [more] a further character to escape
 */
export function escapeUnsafe(text, more = "") {
  const escaped = text.replace(UNSAFE, escape);
  return more === "" ? escaped : escaped.replaceAll(more, escape);
}

function escape(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
