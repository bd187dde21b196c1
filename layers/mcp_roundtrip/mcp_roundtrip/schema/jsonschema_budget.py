"""The budget of one validation with jsonschema: steps are counted, digests and results are cached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct, field

from mcp_roundtrip.canonical import canonical_json
from mcp_roundtrip.schema.patterns import PatternBudget

MAX_KEYWORD_STEPS: Final = 150_000
"""Applications of a keyword to a value in one validation; each takes 5 to 10 microseconds."""


class BudgetExceeded(Exception):
    """A validation takes more than `MAX_KEYWORD_STEPS` steps."""


class ValidationBudget(Struct):
    """The counts and caches of one validation, whose values must stay in memory: the caches go by `id`.

    `caches_results` is False for schemas with dynamic references, whose target depends on the path to them.
    """

    caches_results: bool = True
    steps: int = 0
    patterns: PatternBudget = field(default_factory=PatternBudget)
    digests: dict[int, bytes] = field(default_factory=dict)
    results: dict[tuple[int, int], bool] = field(default_factory=dict)

    def step(self) -> None:
        """Count one step. Raises BudgetExceeded."""
        self.steps += 1
        if self.steps > MAX_KEYWORD_STEPS:
            raise BudgetExceeded

    def digest(self, value: Any) -> bytes:
        """Return a digest, equal for equal values of JSON Schema: 1 equals 1.0, true does not equal 1."""
        if not isinstance(value, (dict, list)):
            return sha256(canonical_json(value)).digest()
        known = self.digests.get(id(value))
        if known is None:
            parts = self._parts(value)
            known = self.digests[id(value)] = sha256(b"".join(parts)).digest()
        return known

    def is_valid(self, schema: Any, value: Any, check: Callable[[], bool]) -> bool:
        """Return the result of `check`, cached by schema and value if `value` is an object or an array."""
        key = id(schema), id(value)
        found = self.results.get(key)
        if found is None:
            found = check()
            if not found:  # creating the error takes as long as another step
                self.step()
            if self.caches_results and isinstance(value, (dict, list)):
                self.results[key] = found
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


_current: ContextVar[ValidationBudget] = ContextVar("validation_budget")


@contextmanager
def validation_budget(*, caches_results: bool) -> Iterator[ValidationBudget]:
    """Start a budget for the validators that `bounded_dialect` makes."""
    token = _current.set(budget := ValidationBudget(caches_results))
    try:
        yield budget
    finally:
        _current.reset(token)


def current_budget() -> ValidationBudget:
    """Return the budget of the current validation."""
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


def hide_values(value: Any) -> Any:
    """Return an equal value with a short repr: jsonschema formats values into messages that are not used."""
    if isinstance(value, dict):
        return _Object((name, hide_values(member)) for name, member in value.items())
    if isinstance(value, list):
        return _Array(map(hide_values, value))
    if isinstance(value, str):
        return _Text(value) if len(value) > 100 else value
    if isinstance(value, int) and value.bit_length() > 64:
        return _Integer(value)
    return value
