"""Tracebacks without what a request brought: its arguments, its answers, its state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from traceback import TracebackException
from typing import Any, Final
from urllib.parse import quote, quote_plus

REDACTED: Final = "[redacted]"

MIN_LENGTH: Final = 4
"""Characters from which on a value is looked for: shorter ones would be found in any text."""

MAX_MESSAGE: Final = 16_384
"""Characters of a message that are looked through: longer ones are left out."""

MAX_VALUES: Final = 10_000
"""Values that are looked for, so that a large request cannot make its failure take long: with more of them,
messages are left out."""

_FRAME: Final = re.compile(r'^[\s|+-]*File ".*", line \d+, in ')

# pydantic shortens what it quotes, so that no value is found in it.
_INPUT: Final = re.compile(r"(?<=input_value=).*(?=, input_type=)")

_FOUND: Final = "\0"  # shorter than a value, so that none is found in what stands for another


def traceback_of(error: BaseException, brought: Iterable[Any]) -> str:
    """The traceback of `error`, in which nothing in `brought` (JSON data) is quoted.

    Frames are the source's own text and stay as they are. Not looked for are values shorter than `MIN_LENGTH`
    characters, names of members, and parts of values, except for the lines of those that have several.
    """
    parts = list(TracebackException.from_exception(error).format())
    values = _values(list(brought))
    return "".join(part if _FRAME.match(part) else _without(values, part) for part in parts)


def _without(values: Iterable[str] | None, message: str) -> str:
    if values is None or len(message) > MAX_MESSAGE:
        return f"[a message of {len(message)} characters]\n"
    for value in values:
        message = message.replace(value, _FOUND)
    return _INPUT.sub(_FOUND, message).replace(_FOUND, REDACTED)


def _values(brought: Any) -> list[str] | None:
    """What to look for: the longest first, so that no rest of it stays. None if that is too much."""
    texts = set(islice(_texts(brought), MAX_VALUES + 1))
    # Notes, groups and syntax errors show a text line by line.
    lines = {line.strip() for text in texts for line in islice(text.splitlines(), MAX_VALUES + 1)}
    if len(texts | lines) > MAX_VALUES:
        return None
    spelled: set[str] = set()
    for text in texts | lines:  # messages quote them in these ways
        spelled |= {text, repr(text)[1:-1], json.dumps(text)[1:-1]}
        spelled |= {encoded(text, errors="replace") for encoded in (quote, quote_plus, _quote_slashes)}
    return sorted((text for text in spelled if MIN_LENGTH <= len(text) <= MAX_MESSAGE), key=len, reverse=True)


def _quote_slashes(text: str, errors: str) -> str:
    return quote(text, safe="", errors=errors)


def _texts(value: Any) -> Iterator[str]:
    """The values in JSON data, as they are written. Names of members are the schema's, not the client's."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
