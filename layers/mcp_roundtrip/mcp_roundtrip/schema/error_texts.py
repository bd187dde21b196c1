"""Texts for the errors of JSON Schema and of pydantic, without values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, get_args

from pydantic_core import ValidationError
from pydantic_core.core_schema import ErrorType

from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.schema import pattern_checks

MAX_PROBLEMS: Final = 20
REFUSED_CHOICE: Final = "refused_choice"
"""The type of pydantic's error for a choice of a union whose JSON Schema refuses the value."""


# -- keywords of JSON Schema


_TYPE_TEXTS: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}

_KEYWORD_TEXTS: Final[Mapping[str, str]] = {
    "minLength": "have {} characters or more",
    "maxLength": "have {} characters at most",
    "pattern": "match the pattern {}",
    "format": "have the format {}",
    "minimum": "be {} or more",
    "maximum": "be {} or less",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minItems": "have {} items or more",
    "maxItems": "have {} items at most",
    "uniqueItems": "have no item twice",
    "minProperties": "have {} members or more",
    "maxProperties": "have {} members at most",
}

_FORMAT_EXAMPLES: Final[Mapping[str, str]] = {
    "date-time": "2026-07-28T14:30:00Z",
    "date": "2026-07-28",
    "time": "14:30:00Z",
    "duration": "PT90M",
}


def keyword_text(keyword: str, operand: Any) -> str:
    """Return what a keyword of a JSON Schema with this operand demands."""
    match keyword, operand:
        case "falseSchema", _:
            return "Input is not allowed"
        case "type", _:
            return f"Input should be {' or '.join(_TYPE_TEXTS[name] for name in operand)}"
        case "enum", _:
            return f"Input should be {' or '.join(map(quote, operand[:20]))}"
        case "const", _:
            return f"Input should be {quote(operand)}"
        case ("format", str(name)) if name in _FORMAT_EXAMPLES:
            return f"Input should have the format {quote(name)}, such as {_FORMAT_EXAMPLES[name]}"
        case "pattern", pattern_checks.BASE64:
            return 'Input should have the format "base64"'
        case _ if keyword in _KEYWORD_TEXTS:
            return f"Input should {_KEYWORD_TEXTS[keyword].format(quote(operand))}"
    return f"Input does not satisfy {keyword}" + ("" if operand is None else f": {quote(operand)}")


def unknown_text(root: str, path: Sequence[str | int]) -> str:
    """Return the problem of a member that an object of the schema does not have."""
    return "unknown argument" if root == "arguments" and len(path) == 1 else "unknown member"


def quote(operand: Any) -> str:
    """Return an operand as JSON, at most 200 characters."""
    text = json.dumps(operand, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"


# -- errors of pydantic

# pydantic's own texts for these errors quote the input.
_WITHOUT_INPUT: Final = {
    "union_tag_invalid": "Input does not say which of {expected_tags} it is ({discriminator})",
    "uuid_parsing": "Input should be a valid UUID",
    "byte_size_unit": "Input should have a unit of bytes, such as KB",
    "zoneinfo_str": "Input should be the name of a time zone",
    "timezone_offset": "Input has another timezone offset than {tz_expected} seconds",
}


def describe_errors(error: ValidationError, root: str, *, for_log: bool = False) -> str:
    """Return one line per error: its place, from `root` on, and the problem.

    `for_log`: without texts of the author's validators, which may quote values, and names that a client made.
    """
    errors = error.errors(include_url=False, include_input=False)
    found = [each for each in errors if each["type"] != REFUSED_CHOICE] or errors
    describe = _describe_for_log if for_log else _describe
    return "\n".join(first_lines(describe(each, root) for each in found))


def first_lines(lines: Iterable[str]) -> list[str]:
    """Return the first lines, each once, and a last one if there are more."""
    found = [*islice(lines, MAX_PROBLEMS + 1)]
    return [*dict.fromkeys(found[:MAX_PROBLEMS]), *(["and more"] if found[MAX_PROBLEMS:] else [])]


def _describe(item: Any, root: str) -> str:
    return f"{format_location(root, item['loc'])}: {_problem(item, root)}"


def _describe_for_log(item: Any, root: str) -> str:
    if item["type"] == "extra_forbidden":
        return f"{format_location(root, item['loc'][:-1])}: unknown member"
    if item["type"] in ("value_error", "assertion_error") or item["type"] not in get_args(ErrorType):
        return f"{format_location(root, item['loc'])}: refused by a validator"
    return _describe(item, root)


def _problem(item: Any, root: str) -> str:
    kind = item["type"]
    if kind == "extra_forbidden":
        return unknown_text(root, item["loc"])
    if kind in _WITHOUT_INPUT:
        return _WITHOUT_INPUT[kind].format_map(item.get("ctx", {}))
    error = item.get("ctx", {}).get("error")
    if isinstance(error, UnicodeError):
        return "Input should be UTF-8 text"
    if _raising_module(error) == "ipaddress":  # its text quotes the input, in an author's validator
        return "Input should be a valid IP address or network"
    return str(item["msg"]).removeprefix("Value error, ")


def _raising_module(error: object) -> str | None:
    trace = getattr(error, "__traceback__", None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_globals.get("__name__")
