"""Parse the body of an HTML form (application/x-www-form-urlencoded, WHATWG URL standard §5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

MAX_BODY_BYTES: Final = 1_000_000
"""Limit of a form's body. Answers are stored in items of at most 400 KB."""

MAX_VALUES: Final = 20_000
"""Limit of the name-value pairs in a form's body."""

Values = Mapping[str, tuple[str, ...]]
"""The values of each control by its name, in the order of the body."""

_MALFORMED_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NEWLINES: Final = re.compile(r"\r\n?")


class MalformedForm(ValueError):
    """A body is not the form of a browser. The text quotes nothing from it."""


def parse_form(body: str | bytes) -> Values:
    """Return the values in a form body; line breaks become `\\n`.

    Raises MalformedForm for malformed escapes, text that is not UTF-8, and too many values.
    """
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if data.count(b"&") >= MAX_VALUES:
        raise MalformedForm(f"more than {MAX_VALUES} values")
    found: dict[str, list[str]] = {}
    for pair in data.split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            found.setdefault(_decode(name), []).append(_decode(value))
    return {name: tuple(values) for name, values in found.items()}


def query_value(query: str, name: str) -> str:
    """Return the only value of `name` in a query string; empty if it is missing, repeated or malformed."""
    try:
        return only_value(parse_form(query), name)
    except MalformedForm:
        return ""


def only_value(values: Values, name: str) -> str:
    """Return the only value of `name`; empty if it is missing or repeated."""
    found = values.get(name, ())
    return found[0] if len(found) == 1 else ""


def _decode(text: bytes) -> str:
    if _MALFORMED_ESCAPE.search(text):
        raise MalformedForm("malformed percent-encoding")
    try:
        decoded = unquote_to_bytes(text.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedForm("not UTF-8") from None
    return _NEWLINES.sub("\n", decoded)
