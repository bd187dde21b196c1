"""Cached pydantic TypeAdapters, and values as JSON.

A value is serialized once, to text, and its data is read from that text: an author's serializers may have
effects, and may return something else the second time. Only the text shows two members with one name.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import lru_cache
from math import isfinite
from types import NoneType
from typing import Any, Final

import msgspec
import pydantic_core
from pydantic import BaseModel
from pydantic.config import ConfigDict
from pydantic.type_adapter import TypeAdapter
from typing_extensions import TypeAliasType

from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.protocol.strict_json import MAX_DEPTH, has_half_of_a_pair, reject_constant, unique_members
from mcp_roundtrip.schema.core_schema_traversal import nodes
from mcp_roundtrip.schema.pydantic_validator import is_misread, typed_validator

JsonResult = tuple[Any, str]
"""JSON data, and the JSON text on one line from which it was read."""

# Bytes that are not UTF-8 survive a round trip, unless a type configures its own encoding.
_BASE64 = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def type_adapter(annotation: Any, *, of_step: bool = False) -> TypeAdapter[Any]:
    """Return the cached TypeAdapter, which takes no boolean for a number. Raises PydanticUserError.

    `of_step`: members have the names of fields, and bytes are Base64.
    """
    try:
        hash(annotation)
    except TypeError:  # metadata may have no hash, as in Annotated[int, {...}]
        return _build(annotation, of_step)
    # Literal["a", "b"] equals Literal["b", "a"], but their schemas differ.
    return _cached(annotation, of_step, repr(annotation))


def _build(annotation: Any, of_step: bool, spelling: str = "") -> TypeAdapter[Any]:
    config = _BASE64 if of_step else None
    # A dataclass or a TypedDict takes it only under another name. A model has its own.
    alias: Any = TypeAliasType("Alias", annotation) if of_step else annotation
    adapter: TypeAdapter[Any] = TypeAdapter(alias, config=config)
    if any(map(is_misread, nodes(adapter.core_schema))):
        adapter.validator = typed_validator(adapter.core_schema, config=config, of_step=of_step)
    return adapter


_cached = lru_cache(maxsize=512)(_build)


def to_json(value: Any, *, by_alias: bool = True) -> JsonResult:
    """Serialize a value of any type. Raises ValueError, such as RepeatedName, if JSON cannot hold it."""
    return read_written(pydantic_core.to_json(value, by_alias=by_alias), value, type_adapter(Any))


def read_written(text: bytes, value: Any, types: TypeAdapter[Any]) -> JsonResult:
    """Return the data in the text that pydantic wrote. Raises ValueError, such as RepeatedName."""
    data = _DECODER.decode(text.decode())
    # pydantic replaces NaN by null. If a serializer of the author did, the Python values have no NaN either.
    if _is_replaced(text, value) and _is_beyond_json(types.dump_python(value, warnings=False)):
        raise ValueError("not JSON")
    return data, text.decode()


def read_plain(text: bytes, value: Any, types: TypeAdapter[Any]) -> JsonResult:
    """Return the data in the text of a value of a plain type: no name is repeated. Raises ValueError."""
    if _is_replaced(text, value):
        raise ValueError("not JSON")
    return msgspec.json.decode(text), text.decode()


def _is_replaced(text: bytes, value: Any) -> bool:
    """Return whether pydantic may have written null for NaN, or U+FFFD for half of a surrogate pair."""
    return (b"null" in text or b"\xef\xbf\xbd" in text) and _is_beyond_json(value)


def _is_beyond_json(value: Any) -> bool:
    """Return whether a value has NaN or Infinity, or a name with half of a surrogate pair."""
    waiting = [value]
    seen = set[int]()  # members that are not serialized may contain themselves
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not isfinite(each):
            return True
        if id(each) not in seen:
            seen.add(id(each))
            for name, member in members(each):
                waiting.append(member)
                if isinstance(name, str) and has_half_of_a_pair(name):
                    return True
    return False


def members(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the parts of a value with the name, key or position of each."""
    if isinstance(value, BaseModel):  # whose own __iter__, such as a RootModel's, may return something else
        return BaseModel.__iter__(value)
    if is_dataclass(value):
        return [(field.name, getattr(value, field.name, None)) for field in fields(value)]
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, (list, tuple, set, frozenset, deque)) else ()


_SCALARS: Final = (str, int, float, NoneType)
_DECODER: Final = json.JSONDecoder(object_pairs_hook=unique_members, parse_constant=reject_constant)


# -- messages


def locate_unserializable(value: Any, root: str) -> str:
    """Return `, at root.a[0]: Thing` for the first, innermost value that JSON cannot hold, or "" for JSON."""
    if _is_json(value):
        return ""
    path: list[str | int] = []
    while len(path) < MAX_DEPTH:  # a value may contain itself
        parts = () if isinstance(value, Set) else members(value)  # a set has no order
        step = next((part for part in parts if not _is_json(part[1])), None)
        if step is None:
            break
        path.append(path_step(step[0]))
        value = step[1]
    return f", at {format_location(root, path)}: {_describe(value)}"


def locate_iterator(value: Any, root: str) -> str:
    """Return `, at root.a[0]: generator` for an iterator in a value, or "": its items can be read once."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    seen = set[int]()  # a value may contain itself
    while waiting:
        names, each = waiting.pop()
        if isinstance(each, (Iterator, AsyncIterator)):
            path = [path_step(name) for name in names]
            return f", at {format_location(root, path)}: {type(each).__name__}"
        if id(each) not in seen:
            seen.add(id(each))
            waiting.extend(
                ((*names, name), member) for name, member in members(each) if not isinstance(member, _SCALARS)
            )
    return ""


def _describe(value: Any) -> str:
    if isinstance(value, float):
        return "NaN or Infinity"
    if isinstance(value, int):
        return "an integer of more than 4,300 digits"
    if isinstance(value, str):
        return "half of a surrogate pair"
    if isinstance(value, bytes):
        return "bytes that are not UTF-8 (encode them as Base64 text)"
    if isinstance(value, Mapping) and not all(_is_json(name) for name in value if isinstance(name, str)):
        return "half of a surrogate pair in a name"
    return type(value).__name__


def _is_json(value: Any) -> bool:
    try:
        to_json(value)
    except Exception:  # an author's serializer may raise anything
        return False
    return True


def path_step(name: Any) -> str | int:
    if isinstance(name, str):
        return name if _is_json(name) else "\ufffd"
    return name if isinstance(name, int) else type(name).__name__
