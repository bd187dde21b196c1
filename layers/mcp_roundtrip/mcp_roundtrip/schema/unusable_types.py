"""Types that are refused when a tool or a question is defined.

JSON has no value of the type, or checking a client's value takes unbounded time, or runs what a client sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from inspect import isclass
from typing import Any, Final

from pydantic_core import PydanticKnownError

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.core_schema_traversal import (
    CoreSchema,
    children,
    definitions_of,
    dereference,
    option_json,
    options_of,
)
from mcp_roundtrip.schema.pattern_checks import pattern_problem

_PATTERN_COMPILERS: Final = frozenset(
    {"pattern_either_validator", "pattern_str_validator", "pattern_bytes_validator"}
)
"""pydantic's functions that compile a text from the client."""

_NEVER_HASHABLE: Final = frozenset({"list", "set", "dict", "typed-dict"})
_NEVER_TEXT: Final = _NEVER_HASHABLE | {"frozenset", "tuple", "named-tuple", "model", "dataclass", "none"}
"""Types of core schemas that no set can hold, and to which no name of a JSON object is converted."""

_SAMPLES: Final[Mapping[str, Any]] = {
    **{"any": object(), "none": None, "bool": False, "int": 0, "float": 0.0, "str": ""},
    **{"list": [], "dict": {}, "set": set(), "tuple": ()},
}
"""Types of core schemas -> a value, to which a limit can be applied, or not."""


def refuse_unusable(schema: CoreSchema, noun: str = "member") -> None:
    """Raise DefinitionError for an unusable type. `noun` is what the message calls its members."""
    for path, problem in _problems(schema, (), definitions_of(schema), is_python_re=False):
        inner = f", member {'.'.join(path[1:])!r}" if path[1:] else ""
        raise DefinitionError(f"{noun} {path[0]!r}{inner}: {problem}" if path else problem)


def _problems(
    schema: CoreSchema,
    path: tuple[str, ...],
    definitions: Mapping[str, CoreSchema],
    *,
    is_python_re: bool,
) -> Iterator[tuple[tuple[str, ...], str]]:
    engine = (schema.get("config") or {}).get("regex_engine")
    is_python_re = engine == "python-re" if engine else is_python_re
    if problem := _problem(schema, definitions, is_python_re=is_python_re):
        yield path, problem
    for name, child in children(schema):
        inner = (*path, name) if name else path
        yield from _problems(child, inner, definitions, is_python_re=is_python_re)


def _problem(schema: CoreSchema, definitions: Mapping[str, CoreSchema], *, is_python_re: bool) -> str | None:
    if problem := _limits_problem(schema):
        return problem
    match schema["type"]:
        case "is-subclass":
            return "JSON cannot hold a class; write a Literal of names"
        case "is-instance" if isclass(schema["cls"]) and issubclass(schema["cls"], Enum):
            return "Enum has no members; write an enumeration that has some"
        case "enum" | "literal":
            return _options_problem(options_of(schema))
        case "dict" | "ordered-dict" | "counter":
            return _keys_problem(dereference(schema.get("keys_schema", {}), definitions))
        case "set" | "frozenset":
            return _items_problem(dereference(schema.get("items_schema", {}), definitions))
        case "function-after" if _is_of_pydantic(limit := schema["function"]["function"]):
            return _inapplicable_limit(limit, schema["schema"], definitions)
        case "str" if pattern := schema.get("pattern"):
            return _pattern_problem(pattern, is_python_re=is_python_re)
    return _alias_problem(schema.get("validation_alias")) or _function_problem(schema.get("function"))


def _limits_problem(schema: CoreSchema) -> str | None:
    """Return why no value is within the limits of a number, a date, a text or a list."""
    for least, most in (("ge", "le"), ("ge", "lt"), ("gt", "le"), ("gt", "lt"), ("min_length", "max_length")):
        low, high = schema.get(least), schema.get(most)
        if low is None or high is None or low < high:
            continue
        if low > high or least == "gt" or most == "lt":
            return f"no value has {least}={low} and {most}={high}; write limits that leave values"
    return None


def _is_of_pydantic(function: Any) -> bool:
    """Return whether a function is pydantic's for a limit. A method of `str` has no `__module__`."""
    module = getattr(function.func, "__module__", "") if isinstance(function, partial) else ""
    return str(module).startswith("pydantic.")


def _inapplicable_limit(
    limit: partial[Any], schema: CoreSchema, definitions: Mapping[str, CoreSchema]
) -> str | None:
    """Return which values of a type raise TypeError in pydantic's function for a limit, or None."""
    schema = dereference(schema, definitions)
    if schema["type"] in ("union", "nullable"):
        members = [each for _, each in children(schema)]
        members += [{"type": "none"}] if schema["type"] == "nullable" else []
        problems = (_inapplicable_limit(limit, each, definitions) for each in members)
        return next(filter(None, problems), None)
    kind = schema["type"]
    for sample in options_of(schema) or ([_SAMPLES[kind]] if kind in _SAMPLES else []):
        try:
            with suppress(PydanticKnownError):  # the sample is beyond the limit
                limit(sample)
        except TypeError:
            name, value = next(iter(limit.keywords)), type(sample).__name__
            remedy = "write it at the type that it limits, as in Annotated[int, Field(ge=1)] | None"
            return f"{name}= cannot limit {value}; {remedy}"
    return None


def _options_problem(options: list[Any]) -> str | None:
    """Return which two values of a `Literal` or an enumeration have one JSON, or None."""
    known: dict[bytes, Any] = {}
    for each in options:
        first = known.setdefault(option_json(each), each)
        if first is not each:
            return f"{first!r} and {each!r} are one value in JSON; write values that differ"
    return None


def _keys_problem(keys: CoreSchema) -> str | None:
    """Return why no name of a JSON object is a key, or None. pydantic reads numbers from names."""
    if keys.get("type") in _NEVER_TEXT and not keys.get("root_model"):
        return f"the names of a JSON object are text, and never {_name(keys)}; write a list of objects"
    if _is_unhashable(keys):
        return f"a dict cannot have keys of {_name(keys)}, which has no hash; write a list of objects"
    options = options_of(keys)
    if not options or any(option_json(each).startswith(b'"') for each in options):
        return None
    return f"the names of a JSON object are text, and never {options[0]!r}; write a Literal of texts"


def _items_problem(items: CoreSchema) -> str | None:
    if items.get("type") in _NEVER_HASHABLE or _is_unhashable(items):
        return f"a set cannot hold {_name(items)}, which has no hash; write a list"
    return None


def _is_unhashable(schema: CoreSchema) -> bool:
    cls = schema.get("cls")  # of a model or a dataclass
    return cls is not None and cls.__hash__ is None


def _name(schema: CoreSchema) -> str:
    return getattr(schema.get("cls"), "__name__", None) or str(schema["type"])


def _pattern_problem(pattern: str | re.Pattern[str], *, is_python_re: bool) -> str | None:
    if isinstance(pattern, re.Pattern) or is_python_re:
        text = pattern if isinstance(pattern, str) else pattern.pattern
        return (
            f"the pattern {text!r} runs on Python's re, which can take exponential time for a client's text; "
            'write Field(pattern="...") without re.compile and without regex_engine="python-re", and check '
            "what needs look-around or back-references in the function"
        )
    problem = pattern_problem(pattern)
    return f"the pattern {pattern!r} {problem}" if problem else None


def _alias_problem(alias: Any) -> str | None:
    if alias is None or isinstance(alias, str):
        return None
    paths = alias if isinstance(alias[0], list) else [alias]
    if any(len(each) == 1 for each in paths):
        return None
    return "an alias is one name here, not several or a path; write Field(alias=...)"


def _function_problem(function: Any) -> str | None:
    # It is the function itself in a call schema.
    name = getattr(function.get("function"), "__name__", "") if isinstance(function, dict) else ""
    if name in _PATTERN_COMPILERS:
        return "re.Pattern would run what a client sends as a pattern; take a str instead"
    if name == "import_string":
        return "ImportString would import what a client names; take a Literal of names instead"
    return None
