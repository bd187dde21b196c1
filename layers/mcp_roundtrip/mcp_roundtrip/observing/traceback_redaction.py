"""Format tracebacks without the values that a request contained."""

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
"""Shorter values are not redacted, because they occur in any text."""

MAX_MESSAGE: Final = 16_384
MAX_VALUES: Final = 5_000
"""Longer messages, or all messages with more values, are omitted, so that large failures stay fast."""

_FRAME: Final = r'[\s|+-]*File ".*", line \d+, in '

# pydantic shortens the values in its messages, so they would not be found.
_PYDANTIC_INPUT: Final = r"(?<=input_value=).*(?=, input_type=)"

_SAFE_IN_URLS: Final = ("", "/", "!#$%&'()*+,/:;=?@[]~")
"""Characters that `quote` and, the last, requests, httpx and urllib3 leave unchanged in URLs."""

_PLACEHOLDER: Final = "\0"  # shorter than any value, so that no value is found in it


def redacted_traceback(error: BaseException, values: Iterable[Any]) -> str:
    """Return the traceback of an exception with `values` (JSON data), or whole lines of them, replaced.

    Frames, which contain only source code, and names of members, which are the schema's, stay unchanged.
    """
    parts = list(TracebackException.from_exception(error).format())
    spellings = _spellings(list(values))
    return "".join(part if re.match(_FRAME, part) else _redact(part, spellings) for part in parts)


def _redact(message: str, spellings: Iterable[str] | None) -> str:
    if spellings is None or len(message) > MAX_MESSAGE:
        return f"[a message of {len(message)} characters]\n"
    for spelling in spellings:
        message = message.replace(spelling, _PLACEHOLDER)
    return re.sub(_PYDANTIC_INPUT, _PLACEHOLDER, message).replace(_PLACEHOLDER, REDACTED)


def _spellings(values: Any) -> list[str] | None:
    """Return the texts to replace, the longest first so that no part of one remains. None for too many."""
    texts = set(islice(_texts(values), MAX_VALUES + 1))
    # Notes, exception groups and syntax errors are formatted line by line.
    lines = {line.strip() for text in texts for line in islice(text.splitlines(), MAX_VALUES + 1)}
    if len(texts | lines) > MAX_VALUES:
        return None
    fitting = [text for text in texts | lines if len(text) <= MAX_MESSAGE]  # no spelling is shorter
    spellings = {spelling for text in fitting for spelling in _spellings_of(text)}
    return sorted((text for text in spellings if len(text) >= MIN_LENGTH), key=len, reverse=True)


def _spellings_of(text: str) -> Iterator[str]:
    """Yield a text as messages quote it: plain, in JSON, in the `repr` of both or of bytes, and in URLs."""
    for plain in (text, json.dumps(text)[1:-1]):
        yield plain
        yield repr(plain)[1:-1]
        yield repr(f'{plain}"')[1:-2]  # beside a quotation mark, an apostrophe is escaped
    yield repr(text.encode(errors="replace"))[2:-1]
    yield quote_plus(text, errors="replace")
    yield from (quote(text, safe, errors="replace") for safe in _SAFE_IN_URLS)


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings and numbers in JSON data, without the names of members."""
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
