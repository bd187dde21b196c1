"""What a validation by an author's JSON Schema may cost: its steps are counted, its digests remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from mcp_roundtrip.canonical import canonical_json
from mcp_roundtrip.schema.patterns import PatternBudget

MAX_STEPS: Final = 150_000
"""Keywords that may be applied to values in one call; they take some 5 to 10 microseconds each."""


class TooMuchWork(Exception):
    """A call's arguments need more than `MAX_STEPS` steps."""


@dataclass(slots=True)
class Work:
    """One validation, of values that stay in memory meanwhile: both dicts know them by `id`.

    `remembers` whether values are valid by subschemas: not with dynamic references, which may mean another
    subschema the next time.
    """

    remembers: bool = True
    steps: int = 0
    patterns: PatternBudget = field(default_factory=PatternBudget)
    digests: dict[int, bytes] = field(default_factory=dict)
    known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def step(self) -> None:
        """Raises TooMuchWork."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooMuchWork

    def digest(self, value: Any) -> bytes:
        """Equal for values that JSON Schema calls equal: 1 is 1.0, and true is not 1."""
        if not isinstance(value, (dict, list)):
            return sha256(canonical_json(value)).digest()
        known = self.digests.get(id(value))
        if known is None:
            parts = self._parts(value)
            known = self.digests[id(value)] = sha256(b"".join(parts)).digest()
        return known

    def valid(self, schema: Any, value: Any, check: Callable[[], bool]) -> bool:
        """What `check` returns, which is called once for the two, if `value` is an object or an array."""
        key = id(schema), id(value)
        found = self.known.get(key)
        if found is None:
            found = check()
            if not found:  # the error that says so takes as long as another step
                self.step()
            if self.remembers and isinstance(value, (dict, list)):
                self.known[key] = found
        return found

    def _parts(self, value: dict[str, Any] | list[Any]) -> Iterator[bytes]:
        if isinstance(value, list):
            yield b"["
            yield from map(self.digest, value)
        else:
            yield b"{"
            for name in sorted(value):
                yield self.digest(name)
                yield self.digest(value[name])


_current: ContextVar[Work] = ContextVar("work")


@contextmanager
def counted(*, remembers: bool) -> Iterator[Work]:
    """Count what validators made by `keywords.bounded_dialect` do."""
    token = _current.set(work := Work(remembers))
    try:
        yield work
    finally:
        _current.reset(token)


def current() -> Work:
    """The validation at hand."""
    return _current.get()


class _Object(dict[str, Any]):
    def __repr__(self) -> str:
        return "…"


class _Array(list[Any]):
    def __repr__(self) -> str:
        return "…"


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "…"


class _Integer(int):
    def __repr__(self) -> str:
        return "…"


def quiet(value: Any) -> Any:
    """An equal value, which jsonschema's messages do not write out."""
    if isinstance(value, dict):
        return _Object((name, quiet(member)) for name, member in value.items())
    if isinstance(value, list):
        return _Array(map(quiet, value))
    if isinstance(value, str):
        return _Text(value) if len(value) > 100 else value
    if isinstance(value, int) and value.bit_length() > 64:
        return _Integer(value)
    return value
