"""Matching of patterns in bounded time, on the regular expression engine of pydantic-core (Rust's `regex`).

The engine never backtracks: its time is at most the length of the text times the size of the pattern after
its counted repetitions are written out. Small patterns with long texts are cheap, and so are large patterns
with short texts. `MAX_PATTERN_STEPS` bounds the product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Final

from msgspec import Struct
from pydantic_core import SchemaError, SchemaValidator, core_schema

from mcp_roundtrip.schema.ecma_patterns import NONLINEAR, syntax_problem
from mcp_roundtrip.schema.subschemas import nodes, patterns_of

MAX_PATTERN_STEPS: Final = 20_000_000
"""Bytes of text times `pattern_size` for one pass over a request: 0.3 s, at 15 ns for the costliest step."""

MAX_MATCHING: Final = 100_000_000
"""Characters of an input times the size of all patterns of its schema: 1.5 s, if each text meets each one."""

LONGEST_UNLIMITED: Final = 16_384
"""Bytes of text that each pattern without `maxLength` has to match within the budget."""

_BYTES_PER_CHARACTER: Final = 4

_UNICODE_CLASS: Final = 3
"""The size of a class with characters outside ASCII, which the engine expands to sequences of bytes."""

_SMALLER: Final = "write `+` or `*` in place of the counts"

_TOKEN: Final = re.compile(
    r"""
    (?P<assertion> \\[bBAzZ<>](?:\{[a-z-]*\})? | \(\?[a-zA-Z-]*\) | [*+?^$|])
  | (?P<unicode>   \\[pP]\{[^}]*\} | \\[pP]. | \\[wWdDsS] | \. )
  | (?P<literal>   \\[xuU]\{[^}]*\} | \\. | [^][(){}\\.*+?^$|] )
  | (?P<class>     \[ \^?\]? (?: \\. | \[ (?: \\. | [^]\\] )* \] | [^][\\] )* \] )
  | (?P<open>      \( (?: \? (?: P?<[^>]*> | [a-zA-Z-]*: ) )? )
  | (?P<close>     \) )
  | \{ \s* (?P<least> \d* ) \s* (?: , \s* (?P<most> \d* ) \s* )? \}
    """,
    re.VERBOSE | re.DOTALL,
)

_BEYOND_ASCII: Final = re.compile(r"\[:?\^|\\[wWdDsSpPuU]|\\x(?![0-7][0-9a-fA-F])")
"""What gives a class in ASCII characters outside ASCII: a negation, a Perl or Unicode class, a code point."""

_COUNT: Final = re.compile(r"\{\s*(\d*)[\s,]*(\d*)\s*\}")

_VERBOSE_FLAG: Final = re.compile(r"\(\?[a-zA-Z]*x")

TEXT_TOO_LONG: Final = "Input is too long to be matched with its pattern; send a shorter text"


class TextTooLong(Exception):
    """Matching a text with its pattern takes more than `MAX_PATTERN_STEPS` steps."""


class PatternBudget(Struct):
    """The steps that one pass over a request has spent on patterns."""

    steps: int = 0

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether `pattern` is found in `text`; a pattern unknown to the engine is found in any text.

        Raises TextTooLong.
        """
        compiled = _compiled(pattern)
        if compiled is None:
            return True
        self.spend(pattern, text)
        return compiled.isinstance_python(text)

    def spend(self, pattern: str, text: str) -> None:
        """Count the steps of one match. Raises TextTooLong."""
        self.steps += len(text) * (1 if text.isascii() else _BYTES_PER_CHARACTER) * pattern_size(pattern)
        if self.steps > MAX_PATTERN_STEPS:
            raise TextTooLong


def pattern_problem(pattern: str) -> str | None:
    """Return why clients or the engine cannot compile a pattern, with a remedy; None if they can."""
    if problem := syntax_problem(pattern):
        return problem
    try:
        _compile(pattern)
    except SchemaError as error:
        return compile_problem(error)
    return None


def size_problem(pattern: str, max_length: int | None, keyword: str) -> str | None:
    """Return why a pattern is too large for texts of `max_length` characters, with a remedy, or None.

    `keyword` is how the author writes `max_length`.
    """
    size = pattern_size(pattern)
    longest = MAX_PATTERN_STEPS // (size * _BYTES_PER_CHARACTER) if size else MAX_PATTERN_STEPS
    if size <= MAX_PATTERN_STEPS // LONGEST_UNLIMITED or (max_length is not None and max_length <= longest):
        return None
    limit = f", or limit the text with {keyword}{longest} or less beside the pattern" if longest else ""
    return (
        f"has the size {size:,} with its counted repetitions written out, too large to match long texts; "
        f"{_SMALLER}{limit}"
    )


def affordable_length(patterns: Iterable[str]) -> int:
    """Return how many bytes each of these patterns can be matched with."""
    return MAX_PATTERN_STEPS // max(sum(map(pattern_size, patterns)), 1)


def compile_problem(error: SchemaError) -> str | None:
    """Return why the engine refused to compile a pattern, with a remedy; None for another error."""
    text = str(error)
    if "regex parse error" in text:
        return NONLINEAR
    return f"is too large to compile; {_SMALLER}" if "exceeds size limit" in text else None


def total_size(schema: Mapping[str, Any]) -> int:
    """Return the size of all patterns of a JSON Schema, however often it refers to them."""
    return sum(pattern_size(pattern) for node in nodes(schema) for pattern in patterns_of(node))


@lru_cache(maxsize=256)
def pattern_size(pattern: str) -> int:
    """Return the size of a pattern with its counted repetitions written out, in characters and classes.

    Literal characters outside groups and counts add nothing: the engine keeps few states for them.
    """
    if _VERBOSE_FLAG.search(pattern):  # comments may hold brackets; this product is an upper bound
        return len(pattern) * _UNICODE_CLASS * prod(_repetitions(*found) for found in _COUNT.findall(pattern))
    sizes = [0]  # of the groups that are open at this place
    last = 0  # the size of what a count repeats
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "open":
            sizes.append(0)
        elif kind == "close" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif kind in ("least", "most"):
            count = _repetitions(token["least"], token["most"])
            sizes[-1] += last * (count - 1)
            last *= count
        elif kind in ("unicode", "class", "literal"):
            is_unicode = kind == "unicode" or (kind == "class" and _is_unicode(token[0]))
            last = _UNICODE_CLASS if is_unicode else 1
            sizes[-1] += last if kind != "literal" or len(sizes) > 1 else 0
    return sum(sizes)


def _repetitions(least: str | None, most: str | None) -> int:
    return max(int(least or 1), int(most or 1), 1)


def _is_unicode(character_class: str) -> bool:
    return not character_class.isascii() or _BEYOND_ASCII.search(character_class) is not None


def _compile(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> SchemaValidator | None:
    try:
        return _compile(pattern)
    except SchemaError:
        return None
