"""Patterns: the regular expressions of ECMA-262 with the flag `u`, matched in bounded time.

Clients compile the patterns of a schema, and some lose every tool if they cannot compile one. Look-around and
back-references are refused, because they cannot be matched in linear time. So are `&&`, `--`, `~~` and an
unescaped `[` in a class, which the engine reads as operators and ECMA-262 as characters.

The engine (Rust's `regex`, in jsonschema-rs) never backtracks: its time is at most the length of the text
times the size of the compiled pattern.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from mcp_roundtrip.schema.pydantic_core_schemas import NOT_COMPILED
from mcp_roundtrip.schema.subschemas import patterns_of
from mcp_roundtrip.schema.validation_cost import schema_cost

MAX_PATTERN_SIZE: Final = 256 * 1024
"""Bytes of a compiled pattern."""

MAX_MATCHING: Final = 2_500_000_000
"""Characters of text times bytes of compiled patterns: 1 s, at 0.4 ns for the costliest known pattern."""

TEXT_TOO_LONG: Final = "Input is too long to be matched with its pattern; send a shorter text"

_BYTES_PER_STATE: Final = 16
"""A compiled pattern has fewer states than its bytes divided by this."""

_PROPERTY: Final = (
    r"(?:Script|sc|Script_Extensions|scx|General_Category|gc)=\w+|[LMNPSZC][a-z]?|(?:[A-Z][a-z]+_)?(?:Letter|Mark"
    r"|Number|Symbol|Punctuation|Separator)|Any|ASCII|Alphabetic|Lowercase|Uppercase|White_Space|Emoji|ID_Start|ID_Continue"
)
"""Properties of characters that ECMA-262 has. The engine knows others, such as a script without `Script=`."""

_SET: Final = rf"\\[dDsSwW]|\\[pP]\{{(?:{_PROPERTY})\}}"
_CHARACTER: Final = (
    r"\\[fnrtv]|\\c[a-zA-Z]|\\0(?![0-9])|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\u\{0*(?:10|[0-9a-fA-F])?[0-9a-fA-F]{1,4}\}|\\[\^$\\.*+?()\[\]{}|/]"
)
_MEMBER: Final = rf"(?:{_CHARACTER}|\\[b-]|[^\\\[\]-])"

_TOKEN: Final = rf"""
    (?P<nonlinear>  \( \? <? [=!] | \\[1-9] | \\k )
  | (?P<open>       \( (?: \?: | \? < (?P<name> [A-Za-z_$][\w$]* ) > | (?! \? ) ) )
  | (?P<close>      \) )
  | (?P<quantifier> (?: [*+?] | \{{ (?P<least> \d+ ) (?: , (?P<most> \d* ) )? \}} ) \?? )
  | (?P<between>    \^ | \$ | \\[bB] | \| )
  | (?P<class>      \[ \^? -? (?: {_MEMBER}-{_MEMBER} | {_MEMBER} | {_SET} )* -? \] )
  | (?P<atom>       {_SET} | {_CHARACTER} | [^\\()\[\]{{}}|*+?^$] )
    """
"""Not compiled here, because few types have patterns."""

_REPEATABLE: Final = ("close", "class", "atom")

NONLINEAR: Final = (
    "is not one that can be matched in linear time; write it without look-around and back-references, and "
    "check the rest in the function"
)


_UNLIMITED: Final = r"(?s:\\.|\[(?:\\.|[^]\\])*\]|(?P<found>[*+]|\{\d+,\}|\|))"
"""Finds what lets a match be longer than the pattern, or begin elsewhere."""


def pattern_problem(pattern: str) -> str | None:
    """Return why clients or the engine would not compile a pattern, with a remedy; None if they would."""
    if problem := syntax_problem(pattern):
        return problem
    if pattern_size(pattern) > MAX_PATTERN_SIZE:
        return NOT_COMPILED
    return None


@lru_cache(maxsize=256)
def pattern_size(pattern: str) -> int:
    """Return the size of a compiled pattern in bytes, rounded up to a power of two."""
    from jsonschema_rs import Draft202012Validator, RegexOptions  # few types have patterns

    size = 1024
    while size <= MAX_PATTERN_SIZE:
        try:
            Draft202012Validator({"pattern": pattern}, pattern_options=RegexOptions(size_limit=size))
        except ValueError:
            size *= 2
        else:
            break
    return size


def applied_size(schema: Mapping[str, Any]) -> int:
    """Return the size of the compiled patterns that a JSON Schema matches with one text."""
    return schema_cost(schema, lambda node: sum(map(pattern_size, patterns_of(node))))


def exceeds_matching(patterns: Collection[str], applied: int, value: Any, length: int) -> bool:
    """Return whether it may take too long to match the texts in a value with each of the patterns.

    `applied` is the `applied_size` of their JSON Schema, which may match a text with one pattern several
    times. `length` is that of the value as JSON text.
    """
    sizes = {pattern: pattern_size(pattern) for pattern in patterns}
    total = sum(sizes.values())
    repeats = max(1.0, applied / total)
    if repeats * total * length <= MAX_MATCHING:
        return False
    lengths = list(map(len, _texts(value)))
    matched = sum(size * _matched(pattern, size, lengths) for pattern, size in sizes.items())
    return repeats * matched > MAX_MATCHING


def _matched(pattern: str, size: int, lengths: list[int]) -> int:
    """Return how many characters of texts the engine may read to match a pattern."""
    has_no_limit = any(each["found"] for each in re.finditer(_UNLIMITED, pattern))
    is_limited = pattern.startswith("^") and not has_no_limit
    longest = size // _BYTES_PER_STATE if is_limited else max(lengths, default=0)
    return sum(min(each, longest) for each in lengths)


def text_length(value: Any) -> int:
    """Return the characters of the texts in JSON data, and of the names of members."""
    return sum(map(len, _texts(value)))


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            yield from each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def syntax_problem(pattern: str) -> str | None:
    """Return why clients or the engine would not compile a pattern, with a remedy; None if they would."""
    tokens = re.compile(_TOKEN, re.VERBOSE | re.DOTALL)
    at, depth, names, before = 0, 0, list[str](), ""
    while at < len(pattern):
        token = tokens.match(pattern, at)
        kind = token.lastgroup if token else None
        if token is None or (kind == "quantifier" and before not in _REPEATABLE):
            return (
                f"has {pattern[at : at + 10]!r}, which ECMA-262 with the flag u does not have there; "
                "write it as JavaScript reads it"
            )
        if kind == "nonlinear":
            return NONLINEAR
        if kind == "class" and ("&&" in token[0] or "~~" in token[0]):
            return "has && or ~~ in a class, which engines read differently; write the character once"
        if token["most"] and int(token["least"]) > int(token["most"]):
            return f"has the counts {token[0]} in the wrong order; swap them"
        names += [token["name"]] if token["name"] else []
        depth += (kind == "open") - (kind == "close")
        if depth < 0:
            break
        at, before = token.end(), str(kind)
    if depth:
        return "has parentheses that do not match; close each one, or escape it"
    return "gives two groups one name; rename one of them" if len(names) > len({*names}) else None
