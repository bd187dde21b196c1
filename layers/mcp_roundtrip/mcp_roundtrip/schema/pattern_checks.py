"""Patterns: the regular expressions of ECMA-262 with the flag `u`, matched in bounded time.

Some clients lose every tool if they cannot compile one pattern, or one `enum`. Look-around and
back-references are refused, because they cannot be matched in linear time. So are `&&`, `--`, `~~` and an
unescaped `[` in a class, which the engine reads as operators and ECMA-262 as characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.subschemas import patterns_of, subschemas

MAX_PATTERN_SIZE: Final = 256 * 1024  # bytes of a compiled pattern

BASE64: Final = "^([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2}(==)?|[A-Za-z0-9+/_-]{3}=?)?$"
"""The pattern of the format `base64`. pydantic would skip other characters: it reads "%%" as no bytes."""

_PROPERTY: Final = (
    r"(?:Script|sc|Script_Extensions|scx|General_Category|gc)=\w+|[LMNPSZC][a-z]?|(?:[A-Z][a-z]+_)?(?:Letter|Mark"
    r"|Number|Symbol|Punctuation|Separator)|Any|ASCII|Alphabetic|Lowercase|Uppercase|White_Space|Emoji|ID_Start|ID_Continue"
)
"""The properties of ECMA-262. The engine knows others, such as a script without `Script=`."""

_SET: Final = rf"\\[dDsSwW]|\\[pP]\{{(?:{_PROPERTY})\}}"
_CHARACTER: Final = (
    r"\\[fnrtv]|\\c[a-zA-Z]|\\0(?![0-9])|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\u\{0*(?:10|[0-9a-fA-F])?[0-9a-fA-F]{1,4}\}|\\[\^$\\.*+?()\[\]{}|/]"
)
_MEMBER: Final = rf"(?:{_CHARACTER}|\\[b-]|[^\\\[\]-])"

_TOKEN: Final = rf"""
    (?P<nonlinear>  \( \? <? [=!] | \\[1-9] | \\k )
  | (?P<open>       \( (?: \?: | \? < [A-Za-z_$][\w$]* > | (?! \? ) ) )
  | (?P<close>      \) )
  | (?P<quantifier> (?: [*+?] | \{{ \d+ (?: , \d* )? \}} ) \?? )
  | (?P<between>    \^ | \$ | \\[bB] | \| )
  | (?P<class>      \[ \^? -? (?: {_MEMBER}-{_MEMBER} | {_MEMBER} | {_SET} )* -? \] )
  | (?P<atom>       {_SET} | {_CHARACTER} | [^\\()\[\]{{}}|*+?^$] )
    """  # not compiled here, because few types have patterns

_REPEATABLE: Final = ("close", "class", "atom")

NONLINEAR: Final = (
    "is not one that can be matched in linear time; write it without look-around and back-references, and "
    "check the rest in the function"
)

NOT_COMPILED: Final = (
    "is not compiled by the engine, or too large to match long texts; write it as JavaScript reads it, with "
    "`+` or `*` in place of large counts, and check what needs look-around in the function"
)


def check_for_clients(schema: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a finite JSON Schema that clients, or the engine of patterns, cannot use."""
    nodes = [*subschemas(schema)]
    if any(node.get("enum") == [] for node in nodes):  # Ajv does not compile it
        raise DefinitionError("an enumeration has no values; write one that has some")
    for pattern in sorted({pattern for node in nodes for pattern in patterns_of(node)}):
        if problem := pattern_problem(pattern):
            raise DefinitionError(f"the pattern {pattern!r} {problem}")


def pattern_problem(pattern: str) -> str | None:
    """Return why clients or the engine cannot use a pattern, with a remedy, or None."""
    problem = syntax_problem(pattern)
    return problem or (NOT_COMPILED if pattern_size(pattern) > MAX_PATTERN_SIZE else None)


@lru_cache(maxsize=256)
def pattern_size(pattern: str) -> int:
    """Return the size of a compiled pattern in bytes, rounded up to a power of two."""
    from jsonschema_rs import Draft202012Validator, RegexOptions  # few types have patterns

    # Since 0.61.1, jsonschema-rs does not compile all of a pattern without anchors. pydantic does.
    schema = {"pattern": pattern, "not": {"pattern": rf"^(?:{pattern})\b"}}
    size = 1024
    while size <= MAX_PATTERN_SIZE:
        try:
            Draft202012Validator(schema, pattern_options=RegexOptions(size_limit=size))
        except ValueError:
            size *= 2
        else:
            break
    return size


def syntax_problem(pattern: str) -> str | None:
    """Return which part of a pattern ECMA-262 or the engine does not have, with a remedy, or None.

    The engine itself checks the order of counts, the parentheses, and the names of groups.
    """
    tokens = re.compile(_TOKEN, re.VERBOSE | re.DOTALL)
    at, before = 0, ""
    while at < len(pattern):
        token = tokens.match(pattern, at)
        kind = str(token.lastgroup) if token else ""
        if token is None or (kind == "quantifier" and before not in _REPEATABLE):
            return (
                f"has {pattern[at : at + 10]!r}, which ECMA-262 with the flag u does not have there, or "
                "engines read differently; write it as JavaScript reads it, with [ and - in a class escaped"
            )
        if kind == "nonlinear":
            return NONLINEAR
        if "&&" in token[0] or "~~" in token[0]:
            return "has && or ~~ in a class, which engines read differently; write the character once"
        at, before = token.end(), kind
    return None
