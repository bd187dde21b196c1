"""The syntax of patterns: regular expressions of ECMA-262 with the flag `u`, as JSON Schema recommends.

Clients compile the patterns of a schema, and some lose every tool if they cannot compile one. Look-around and
back-references are refused, because they cannot be matched in linear time. So are `&&`, `--`, `~~` and an
unescaped `[` in a class, which the engine reads as operators and ECMA-262 as characters.
"""

from __future__ import annotations

import re
from typing import Final

_SET: Final = r"\\[dDsSwW]|\\[pP]\{\w+(?:=\w+)?\}"
_CHARACTER: Final = (
    r"\\[fnrtv]|\\c[a-zA-Z]|\\0(?![0-9])|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\u\{0*(?:10|[0-9a-fA-F])?[0-9a-fA-F]{1,4}\}|\\[\^$\\.*+?()\[\]{}|/]"
)
_MEMBER: Final = rf"(?:{_CHARACTER}|\\[b-]|[^\\\[\]-])"

_TOKEN: Final = re.compile(
    rf"""
    (?P<nonlinear>  \( \? <? [=!] | \\[1-9] | \\k )
  | (?P<open>       \( (?: \?: | \? < (?P<name> [A-Za-z_$][\w$]* ) > | (?! \? ) ) )
  | (?P<close>      \) )
  | (?P<quantifier> (?: [*+?] | \{{ (?P<least> \d+ ) (?: , (?P<most> \d* ) )? \}} ) \?? )
  | (?P<between>    \^ | \$ | \\[bB] | \| )
  | (?P<class>      \[ \^? -? (?: {_MEMBER}-{_MEMBER} | {_MEMBER} | {_SET} )* -? \] )
  | (?P<atom>       {_SET} | {_CHARACTER} | [^\\()\[\]{{}}|*+?^$] )
    """,
    re.VERBOSE | re.DOTALL,
)

_REPEATABLE: Final = ("close", "class", "atom")

NONLINEAR: Final = (
    "is not one that can be matched in linear time; write it without look-around and back-references, and "
    "check the rest in the function"
)


def syntax_problem(pattern: str) -> str | None:
    """Return why clients or the engine would not compile a pattern, with a remedy; None if they would."""
    at, depth, names, before = 0, 0, list[str](), ""
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
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
