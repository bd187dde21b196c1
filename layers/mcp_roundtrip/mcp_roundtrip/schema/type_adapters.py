"""Cached pydantic TypeAdapters, and messages for their errors that quote no value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, get_args

from pydantic.config import ConfigDict
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.type_adapter import TypeAdapter
from pydantic_core import ValidationError, to_jsonable_python
from pydantic_core.core_schema import ErrorType

from mcp_roundtrip.schema.core_schemas import CoreSchema, children, nodes

TYPE_ERRORS = (PydanticUserError, PydanticUndefinedAnnotation)
"""The exceptions that pydantic raises for a type that it cannot build or describe in JSON Schema."""

MAX_NAME = 128
"""The most characters of a member's name in a message: a client may have chosen the name."""

MAX_PROBLEMS = 20
"""The most problems that a message lists."""

ACCEPTED_CHOICE: Final = "\0accepted"
"""A step in the places of pydantic's errors that stands for no member (see `union_choices`)."""

REFUSED_CHOICE: Final = "refused_choice"
"""The type of pydantic's error for a choice of a union whose JSON Schema refuses the value."""

# pydantic's own texts for these errors quote the input.
_WITHOUT_INPUT = {
    "union_tag_invalid": "Input does not say which of {expected_tags} it is ({discriminator})",
    "uuid_parsing": "Input should be a valid UUID",
    "byte_size_unit": "Input should have a unit of bytes, such as KB",
    "zoneinfo_str": "Input should be the name of a time zone",
    "timezone_offset": "Input has another timezone offset than {tz_expected} seconds",
}


# Bytes that are not UTF-8 survive a round trip, unless a type configures its own encoding.
_BASE64 = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def type_adapter(annotation: Any, *, base64_bytes: bool = False) -> TypeAdapter[Any]:
    """Return the cached TypeAdapter of `annotation`; with `base64_bytes` it writes bytes as Base64.

    It takes no boolean for a number. Raises one of `TYPE_ERRORS` for a type that pydantic does not know.
    """
    try:
        hash(annotation)
    except TypeError:  # metadata may have no hash, as in Annotated[int, {...}]
        return _build(annotation, base64_bytes)
    # Literal["a", "b"] equals Literal["b", "a"], but their schemas differ.
    return _cached(annotation, base64_bytes, "" if isinstance(annotation, type) else repr(annotation))


def _build(annotation: Any, base64_bytes: bool, spelling: str = "") -> TypeAdapter[Any]:
    config = _BASE64 if base64_bytes else None
    try:
        adapter = TypeAdapter(annotation, config=config)
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        adapter, config = TypeAdapter(annotation), None
    if any(map(_has_booleans_and_numbers, nodes(adapter.core_schema))):
        from mcp_roundtrip.schema.typed_validator import TypedValidator  # few types need it

        adapter.validator = TypedValidator.from_core_schema(adapter.core_schema, config=config).validator
    return adapter


def _has_booleans_and_numbers(schema: CoreSchema) -> bool:
    """Return whether pydantic may take True for 1 in values of a type, or 1.0 for True."""
    if schema["type"] == "union":
        return any(each["type"] == "bool" for _, each in children(schema))
    return len({type(each) for each in schema.get("expected", ()) if isinstance(each, int)}) > 1


_cached = lru_cache(maxsize=512)(_build)


def to_json(value: Any) -> tuple[Any, str]:
    """Return a value of any type as JSON data and as JSON text.

    Raises ValueError (PydanticSerializationError is one) for a value that JSON cannot hold.
    """
    data = to_jsonable_python(value)
    return data, encode_json(data, lambda: type_adapter(Any).dump_python(value))


def encode_json(data: Any, python_values: Callable[[], Any]) -> str:
    """Return `data` as JSON on one line; `python_values` returns the values that pydantic wrote as `data`.

    Raises ValueError for NaN, Infinity and half of a surrogate pair, also where pydantic has replaced them
    by null and, in the names of members, by U+FFFD.
    """
    text = _JSON.encode(data)
    text.encode()
    if "null" in text or "\ufffd" in text:
        try:
            values = python_values()
        except TypeError:  # a set of records: its JSON Schema finds null in the place of a number
            return text
        _STRICT_JSON.encode(values).encode()
    return text


def has_repeated_names(text: bytes) -> bool:
    """Return whether an object in JSON text has a name twice, such as a dict with the keys 1 and "1"."""
    found = False

    def note(members: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({name for name, _ in members}) < len(members)

    json.loads(text, object_pairs_hook=note)
    return found


# The model reads this text, so characters outside ASCII stay. The JSON around it escapes them.
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)

# Finds NaN and halves of surrogate pairs in values of any type; its text is not used.
_STRICT_JSON = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    skipkeys=True,
    default=lambda value: list(value) if isinstance(value, (set, frozenset)) else None,
)


def describe_errors(error: ValidationError, root: str, *, for_log: bool = False) -> str:
    """Return one line per error: its place, from `root` on, and the problem. Values are never quoted.

    `for_log`: without texts of the author's validators, which may quote values, and names that a client made.
    """
    errors = error.errors(include_url=False, include_input=False)
    found = [
        {**each, "loc": [step for step in each["loc"] if step != ACCEPTED_CHOICE]}
        for each in [each for each in errors if each["type"] != REFUSED_CHOICE] or errors
    ]
    describe = _describe_for_log if for_log else _describe
    lines = [describe(item, root) for item in found[:MAX_PROBLEMS]]
    if len(found) > MAX_PROBLEMS:
        lines.append(f"and {len(found) - MAX_PROBLEMS} more")
    return "\n".join(lines)


def _describe(item: Any, root: str) -> str:
    return f"{format_location(root, item['loc'])}: {_problem(item, root)}"


def _describe_for_log(item: Any, root: str) -> str:
    if item["type"] == "extra_forbidden":
        return f"{format_location(root, item['loc'][:-1])}: unknown member"
    if item["type"] in ("value_error", "assertion_error") or item["type"] not in get_args(ErrorType):
        return f"{format_location(root, item['loc'])}: refused by a validator"
    return _describe(item, root)


def format_location(root: str, path: Sequence[str | int]) -> str:
    """Return a place as text: `arguments` and `("sizes", 0, "vcpus")` give `arguments.sizes[0].vcpus`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step[:MAX_NAME]}" for step in path]
    return (root + "".join(steps)).removeprefix(".") or "answer"  # forms have no root


def _problem(item: Any, root: str) -> str:
    kind = item["type"]
    if kind == "extra_forbidden":
        return "unknown argument" if root == "arguments" and len(item["loc"]) == 1 else "unknown member"
    if kind in _WITHOUT_INPUT:
        return _WITHOUT_INPUT[kind].format_map(item.get("ctx", {}))
    error = item.get("ctx", {}).get("error")
    if isinstance(error, UnicodeError):
        return "Input should be UTF-8 text"
    if _raising_module(error) == "ipaddress":  # its text quotes the input
        return "Input should be a valid IP address or network"
    return str(item["msg"]).removeprefix("Value error, ")


def _raising_module(error: object) -> str | None:
    """Return the name of the module that raised `error`, or None if it is not an exception."""
    trace = getattr(error, "__traceback__", None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_globals.get("__name__")
