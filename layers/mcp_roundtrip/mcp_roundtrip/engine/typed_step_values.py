"""Step results of the types that JSON does not have, as pydantic writes and reads them.

Members have the names of the fields, because serialization and validation may have different aliases.

A recorded result counts if its type writes its members as they are recorded: it may be older than the type,
and pydantic would read "3" as 3.
"""

from __future__ import annotations

import json
from collections.abc import Set
from contextlib import suppress
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Final

import pydantic_core
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from mcp_roundtrip.arguments.pydantic_types import explain_type_error
from mcp_roundtrip.arguments.signature import type_name
from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.protocol.strict_json import RepeatedName
from mcp_roundtrip.schema.core_schema_traversal import is_plain_to_read, nodes
from mcp_roundtrip.schema.pydantic_validator import invalid_value
from mcp_roundtrip.schema.serialization import (
    locate_unserializable,
    members,
    path_step,
    to_json,
    type_adapter,
)


class StepType(Struct, frozen=True):
    """A return annotation, and its values. Errors quote no value."""

    annotation: Any

    def check(self) -> TypeAdapter[Any]:
        """Return the adapter of the annotation. Raises UsageError if pydantic cannot use it."""
        try:
            return type_adapter(self.annotation, of_step=True)
        except Exception as error:  # an author's annotation may raise anything
            raise UsageError(self._unusable(error)) from None

    def round_trip(self, value: Any) -> tuple[Any, Any]:
        """Return a value as JSON data, and what `revive` returns for that. Raises UsageError."""
        types = self.check()
        try:
            data = types.dump_python(value, mode="json", **_BY_NAME)
            text = _STRICT.encode(data).encode()
            # As a replay does, unless this would run an author's serializers again.
            result = _read(types, text) if _has_serializer(types) else _read_recorded(types, data, text)
            problem = None if _is_same(value, result) else _describe_difference(value, result)
        except _UNREADABLE as error:
            problem = _problems(error).partition("\n")[0]
        if problem is not None:
            raise UsageError(self._refusal(types, value, problem)) from None
        return data, result

    @staticmethod
    def untyped_to_data(value: Any, without_type: tuple[str, str] | None) -> Any:
        """Return a value of any type as JSON data. Raises UsageError for a value that JSON cannot hold.

        `without_type`: why its type is not known, and the remedy. Then JSON data that differs is refused.
        """
        try:
            data = to_json(value, by_alias=False)[0]
        except RepeatedName:
            raise UsageError(
                "returned a dict with two keys that have one name in JSON, such as 1 and '1'; use other keys"
            ) from None
        except ValueError:
            raise UsageError(
                f"returned a value that JSON cannot hold{locate_unserializable(value, 'result')}; return "
                "text, numbers, lists or dicts, or write a `def` with a return type"
            ) from None
        if without_type is not None and not _is_same(value, data):
            reason, remedy = without_type
            raise UsageError(
                f"returned {type(value).__name__}, and {reason}, so {_describe_difference(value, data)}; "
                f"{remedy}"
            )
        return data

    def revive(self, data: Any) -> Any:
        """Return the value that was recorded; ValueError as in `step_values.revive`."""
        try:
            # pydantic writes in a tenth of the time of json: every pass reads every step.
            return _read_recorded(
                type_adapter(self.annotation, of_step=True), data, pydantic_core.to_json(data)
            )
        except (ValueError, PydanticUserError):
            raise ValueError("the recorded result does not fit the return annotation") from None

    def _unusable(self, error: Exception) -> str:
        return f"cannot have its return type: {explain_type_error(self.annotation, error)}"

    def _refusal(self, types: TypeAdapter[Any], value: Any, problem: str) -> str:
        try:
            data = types.dump_python(value, mode="json", **{**_BY_NAME, "warnings": "error"})
        except _UNREADABLE:
            remedy = "return what the annotation says, or change it"
            if any(node["type"] == "generator" for node in nodes(types.core_schema)):
                remedy = "write `list` in place of Iterable"
            return (
                f"returned {type(value).__name__}, which does not fit its return type "
                f"{type_name(self.annotation)}{locate_unserializable(value, 'result')}; {remedy}"
            )
        if place := locate_unserializable(data, "result"):
            return (
                f"returned a value that JSON cannot hold{place}; return finite numbers and whole characters"
            )
        return (
            f"returned {type(value).__name__}, which cannot be read back from JSON as "
            f"{type_name(self.annotation)}: {problem}; use a type that JSON tells apart, or `-> Any` for JSON"
        )


def _read(types: TypeAdapter[Any], text: bytes) -> Any:
    return types.validate_json(text, by_alias=False, by_name=True)


def _read_recorded(types: TypeAdapter[Any], data: Any, text: bytes) -> Any:
    if _is_plain(types):  # a tenth of the replay of a call with typed steps
        with suppress(ValidationError):
            return types.validate_json(text, strict=True, extra="forbid", by_alias=False, by_name=True)
    value = _read(types, text)
    written = types.dump_json(value, **_BY_NAME)
    if written != text and not _has_recorded(json.loads(written), data, may_rename=_has_reader(types)):
        raise ValueError("its type would write it in another way")
    return value


@lru_cache(maxsize=256)
def _is_plain(types: TypeAdapter[Any]) -> bool:
    return is_plain_to_read(types.core_schema)


@lru_cache(maxsize=256)
def _has_reader(types: TypeAdapter[Any]) -> bool:
    """Return whether a function of the author reads the values, which may know earlier names."""
    return any(node["type"] in _READERS for node in nodes(types.core_schema))


@lru_cache(maxsize=256)
def _has_serializer(types: TypeAdapter[Any]) -> bool:
    """Return whether a function of the author writes the values, or parts of them."""
    return any("function" in node.get("serialization", {}) for node in nodes(types.core_schema))


_READERS: Final = frozenset({"function-before", "function-wrap", "function-plain"})


def _has_recorded(written: Any, data: Any, *, may_rename: bool) -> bool:
    """Return whether JSON data that a type writes has what was recorded.

    It may have more: members with defaults that the type got since. Names that the type lost do not count.
    If it has lost some and got others, it may have renamed them, and the default is not what was recorded.
    A set has another order in each process. To Python, `1` and `True` are equal.
    """
    same = partial(_has_recorded, may_rename=may_rename)
    if isinstance(written, dict) and isinstance(data, dict):
        common = written.keys() & data.keys()
        is_renamed = len(common) < min(len(written), len(data)) and not may_rename
        return not is_renamed and all(same(written[name], data[name]) for name in common)
    if isinstance(written, list) and isinstance(data, list):
        return len(written) >= len(data) and (
            all(map(same, written, data)) or _in_order(written) == _in_order(data)
        )
    return isinstance(written, bool) is isinstance(data, bool) and bool(written == data)


def _in_order(values: list[Any]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in values)


_UNREADABLE: Final = (ValueError, TypeError, OverflowError)
"""What pydantic raises for a value of another type, a key of a dict, and a large integer of a `float`."""

# Without warnings: an int is a value of `float | str`.
_BY_NAME: Final[Any] = {"round_trip": True, "by_alias": False, "warnings": False}


def _problems(error: Exception) -> str:
    if not isinstance(error, ValueError):  # whose text may quote a value
        return type(error).__name__
    return str(invalid_value(error, "result") if isinstance(error, ValidationError) else error)


def _is_same(value: Any, result: Any) -> bool:
    """Return whether a value is equal to what was read back; of objects without equality, the types count."""
    if isinstance(value, (list, tuple)) and isinstance(result, (list, tuple)):
        return len(value) == len(result) and all(map(_is_same, value, result))
    if isinstance(value, dict) and isinstance(result, dict):
        return value.keys() == result.keys() and all(_is_same(value[name], result[name]) for name in value)
    try:
        if value == result or (value != value and result != result):  # NaN
            return True
    except Exception:  # an author's __eq__ may raise anything
        return type(value) is type(result)
    has_equality = getattr(type(value), "__eq__", None) is not getattr(object, "__eq__", None)
    # Two members of an enumeration may be one value in JSON, such as a date and its text.
    return type(value) is type(result) and not (has_equality or isinstance(value, Enum))


def _describe_difference(value: Any, result: Any) -> str:
    """Return which part of a value was read back as what. The two are not the same."""
    path: list[str | int] = []
    while True:
        parts, read = (
            dict[Any, Any]() if isinstance(each, Set) else dict(members(each)) for each in (value, result)
        )
        names = parts if parts.keys() == read.keys() else ()
        name = next((name for name in names if not _is_same(parts[name], read[name])), None)
        if name is None:
            break
        path.append(path_step(name))
        value, result = parts[name], read[name]
    became = type(result).__name__
    if type(result) is type(value):
        became = "a dict with other keys" if isinstance(result, dict) else "another value"
    return f"{format_location('result', path) if path else 'it'} becomes {became}"


# Raises for NaN, and for half of a surrogate pair, which reading back would refuse.
_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
