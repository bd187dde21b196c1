"""Replace what differs from run to run by placeholders that keep equality visible.

`<state 1>` is the first state of a case, wherever it appears. Opaque values are numbered by their first
appearance. A state is opened with the keys of the corpus, and its content is recorded once, where the record
of the case ends. Times are written as seconds since the case began, with the unit or the format that they
had: `<ms +60>` is a time in epoch milliseconds. The clock of a case has no chance in it.
"""

import hashlib
import json
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from corpus.clock import START
from corpus.tokens import open_token, type_of

LONGEST = 20_000
"""Characters of a text. Of a longer one, such as an HTML page, the record has the length and a digest."""

_TOKENS = (
    ("token", re.compile(r"eyJ[\w-]{8,}(?:\.[\w-]*){2,4}")),
    ("session", re.compile(r"eyJwcm90b2NvbFZlcnNpb24i[\w-]+")),
)
_OPAQUE = (
    ("uuid", re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")),
    ("hex", re.compile(r"\b[0-9a-f]{16,64}\b")),
    ("id", re.compile(r"(?<![\w/+-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?:[\w-]{32}|[\w-]{43})(?![\w/+=-])")),
)
"""Kind -> texts of this kind: tokens, ids, and digests of ids or of what a caller must not see."""

_WORD = re.compile(r"[\w-]{12,}")

_ISO = re.compile(r"2026-0[789]-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"1[78]\d{8}(?:\d{3})?")
_NAMED_BY_CHANCE = frozenset({"mark", "timestamp", "Timestamp"})
"""Members whose values say nothing: the ids of writes, and the times of lines."""

_MODULE = re.compile(r"^(?:\w+\.)+(?=\w+)")
_PLACE = re.compile(r"(?<![\w./\[\]-])[\w./\[\]-]{1,200}\.py:\d+")
"""A line of a file, which may be below a folder whose name the log redacts."""

_CANDIDATE = re.compile(r"[\w-]{10}|\.py:|<style>")
"""What every text has that one of these patterns may match."""

_NUMBERED = re.compile(r" \d+>")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_CENTURY = 10.0**8
"""Seconds around the beginning of a case within which a number is a time."""


class Placeholders:
    """The placeholders of one case."""

    def __init__(self, drawn: Iterable[bytes] = ()) -> None:
        """Know the random bytes of the case, in the forms in which they become ids."""
        self._ids = {each.hex() for each in drawn}
        self._ids |= {urlsafe_b64encode(each).rstrip(b"=").decode() for each in drawn}
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self.opened: list[dict[str, Any]] = []

    def replace(self, value: Any) -> Any:
        """Return JSON data with placeholders, in which JSON texts are read."""
        if isinstance(value, dict):
            return {self._text(name): self._member(name, member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.replace(item) for item in value]
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _time(value)
        return value

    def ordered(self, rows: list[Any]) -> list[Any]:
        """Return the rows of a table with placeholders, in the order in which their keys appeared."""
        replaced = [self.replace(row) for row in rows]
        return sorted(replaced, key=lambda row: (_numbers(row["pk"]["S"]), row["sk"]["S"]))

    def _member(self, name: str, value: Any) -> Any:
        if name == "exception" and isinstance(value, str):  # other lines change with every refactoring
            return "<traceback> " + self._text(_MODULE.sub("", value.rstrip().splitlines()[-1]))
        if name == "B" and isinstance(value, str):
            return self._bytes(b64decode(value))
        if name in _NAMED_BY_CHANCE:
            return f"<{name}>"
        if isinstance(value, str) and name in ("Message", "Mac", "Signature"):
            return self._bytes(b64decode(value))
        return self.replace(value)

    def _bytes(self, value: bytes) -> Any:
        try:
            text = value.decode("ascii")
        except UnicodeDecodeError:
            return self._named("bytes", value.hex())
        if (typ := type_of(text)) is not None:
            return f"<a token {typ} to sign>"
        return self._text(text)

    def _string(self, text: str) -> Any:
        if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
            try:
                return {"json": self.replace(json.loads(text))}
            except ValueError:
                pass
        if text.startswith("event: ") or text.startswith("data: "):
            lines = [line.partition(": ") for line in text.splitlines() if line]
            return {"sse": [{name: self.replace(value)} for name, _, value in lines]}
        return self._text(text)

    def _text(self, text: str) -> str:
        if text not in self._texts:
            self._texts[text] = self._replaced(text)
        return self._texts[text]

    def _replaced(self, text: str) -> str:
        if not _CANDIDATE.search(text):
            return text
        for kind, pattern in _TOKENS:
            text = pattern.sub(partial(self._replacement, kind), text)
        # After the tokens, which have random parts.
        text = _WORD.sub(self._id, text)
        for kind, pattern in _OPAQUE:
            text = pattern.sub(partial(self._replacement, kind), text)
        text = _ISO.sub(_iso_time, text)
        text = _NUMBER.sub(lambda found: str(_time(int(found[0]))), text)
        text = _PLACE.sub("<line>", _STYLE.sub("<style>", text))
        if len(text) > LONGEST:
            digest = hashlib.sha256(_NUMBERED.sub("", text).encode("utf-8", "replace")).hexdigest()[:12]
            return f"<{len(text)} characters, beginning {text[:60]!r}, digest {digest}>"
        return text

    def _id(self, found: re.Match[str]) -> str:
        return self._named("id", found[0]) if found[0] in self._ids else found[0]

    def _replacement(self, kind: str, found: re.Match[str]) -> str:
        return self._named(kind, found[0])

    def _named(self, kind: str, value: str) -> str:
        if value not in self._names:
            content = open_token(value) if kind in ("token", "session") else None
            kind = kind if content is None else content.pop("kind")
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = name = f"<{kind} {self._counts[kind]}>"
            if content is not None:
                self.opened.append({})
                self.opened[-1].update({"token": name, **self.replace(content)})
        return self._names[value]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r" (\d+)>", text)]


def _time(value: int | float) -> Any:
    number = "" if isinstance(value, int) else "fractional "
    if abs(value - START) < _CENTURY:
        return _label(f"{number}s", value)
    return _label(f"{number}ms", value / 1000) if abs(value / 1000 - START) < _CENTURY else value


def _iso_time(found: re.Match[str]) -> str:
    form = _DIGIT.sub("0", found[0][len("2026-08-01T00:00:00") :])
    return _label(f"ISO {form}", datetime.fromisoformat(found[0]).timestamp())


def _label(form: str, epoch_s: float) -> str:
    return f"<{form} {round(epoch_s - START, 3):+g}>"
