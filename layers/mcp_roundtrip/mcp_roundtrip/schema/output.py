"""A tool's result: outputSchema from the return annotation, content and structuredContent from the value."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from inspect import Signature
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.schema.content_blocks import BLOCKS, Text
from mcp_roundtrip.schema.signature import function_name, resolve_type_hints, type_name
from mcp_roundtrip.schema.type_adapters import (
    TYPE_ERRORS,
    describe_errors,
    encode_json,
    to_json,
    type_adapter,
)


class Missing(Enum):
    """`null` is a structuredContent like any other: its absence needs a value of its own."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

_UNION = (Union, UnionType)
_SEQUENCE = (list, tuple)
_INSTANCES = ("model", "dataclass")


class _Kind(Enum):
    OPEN = "the value decides"
    CONTENT = "content blocks, text or nothing"
    STRUCTURED = "an outputSchema"


@dataclass(frozen=True, eq=False)  # no slots: cached_property keeps what it built in __dict__
class Output:
    """What a function returns to a client, as JSON Schema and as a serialiser."""

    name: str
    annotation: Any
    kind: _Kind

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Output:
        """Read the return annotation of `function`.

        Raises DefinitionError for one that mixes content blocks with structured values, since an
        outputSchema would have to hold for both.
        """
        name = function_name(function)
        annotation = resolve_type_hints(function).get("return", Signature.empty)
        if annotation in (Signature.empty, Any, object):
            return cls(name, annotation, _Kind.OPEN)
        if _is_content(annotation):
            return cls(name, annotation, _Kind.CONTENT)
        if _mentions_block(annotation):
            raise DefinitionError(
                f"{name}: the return type {type_name(annotation)} mixes content blocks with structured "
                "values; return either blocks, str and None, or a model"
            )
        return cls(name, annotation, _Kind.STRUCTURED)

    def json_schema(self) -> dict[str, Any] | None:
        """The tool's `outputSchema`, or None; built once, not to be changed by the caller.

        Raises DefinitionError for a type that JSON Schema cannot describe.
        """
        return self._json_schema

    def dump(self, value: Any) -> tuple[list[dict[str, Any]], Any]:
        """`content`, and `structuredContent` or MISSING.

        With an outputSchema every value is structured, None and text too: the specification demands a
        structured result then. Raises UsageError, naming the place and quoting no value, for a value
        that does not fit the return type or is not JSON.
        """
        if self.kind is _Kind.STRUCTURED:
            return _structured(*self._typed(value))
        blocks = _blocks(value, text_alone=self.kind is _Kind.CONTENT)
        if blocks is not None:
            return blocks, MISSING
        if self.kind is _Kind.CONTENT:
            raise UsageError(
                f"{self.name} returned {type(value).__name__}; return {type_name(self.annotation)}, as "
                "annotated"
            )
        return _structured(*untyped(self.name, value))

    @cached_property
    def _json_schema(self) -> dict[str, Any] | None:
        if self.kind is not _Kind.STRUCTURED:
            return None
        from mcp_roundtrip.schema.json_schema import build_json_schema  # lists need it, calls do not

        try:
            return build_json_schema(type_adapter(self.annotation), "serialization")
        except Exception as error:  # an annotation of the author's may raise anything
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> DefinitionError:
        from mcp_roundtrip.schema.type_errors import explain_type_error  # for errors only

        return DefinitionError(f"{self.name}: the return type: {explain_type_error(self.annotation, error)}")

    @cached_property
    def _has_instances(self) -> bool:
        return _instances_in(type_adapter(self.annotation).core_schema)

    def _typed(self, value: Any) -> tuple[Any, str]:
        try:
            types = type_adapter(self.annotation)
            # Validating first lets a dict stand for a model, and holds every constraint the schema states.
            fitting = types.validate_python(value, by_alias=True, by_name=True)
            data = types.dump_python(fitting, mode="json", by_alias=True, warnings="error")
            if self._has_instances:
                from mcp_roundtrip.schema.revalidation import check  # many results are plain data

                check(types, fitting)
        except TYPE_ERRORS as error:
            raise self._unusable(error) from None
        except ValidationError as error:
            raise UsageError(f"{self._mismatch()}\n{describe_errors(error, 'result')}") from None
        except (PydanticSerializationError, UnicodeError):
            raise UsageError(self._mismatch(_place(value))) from None
        try:
            return data, encode_json(data, lambda: types.dump_python(fitting, warnings=False))
        except ValueError:
            raise _not_json(self.name, value) from None

    def _mismatch(self, place: str = "") -> str:
        what = f"{self.name} returned a value that does not fit its return type {type_name(self.annotation)}"
        return f"{what}{place}; return what the annotation says, or change it"


def _instances_in(schema: Any) -> bool:
    """Whether pydantic's core schema has a model or a dataclass."""
    if isinstance(schema, Mapping):
        return schema.get("type") in _INSTANCES or any(map(_instances_in, schema.values()))
    return isinstance(schema, _SEQUENCE) and any(map(_instances_in, schema))


def untyped(name: str, value: Any) -> tuple[Any, str]:
    """What the function `name` returned, as JSON data and as text.

    Raises UsageError, naming the place and quoting no value, for what JSON cannot hold.
    """
    try:
        return to_json(value)
    except ValueError:
        raise _not_json(name, value) from None


def _not_json(name: str, value: Any) -> UsageError:
    if isinstance(value, Coroutine):
        value.close()
        return UsageError(f"{name} returned a coroutine without awaiting it; write `async def {name}`")
    return UsageError(
        f"{name} returned a value that JSON cannot hold{_place(value)}; return text, numbers, lists, dicts, "
        "models or dataclasses"
    )


def _place(value: Any) -> str:
    from mcp_roundtrip.schema.json_errors import place  # most calls return what can be written

    return place(value, "result")


def _structured(data: Any, text: str) -> tuple[list[dict[str, Any]], Any]:
    return [{"type": "text", "text": text}], data  # not by way of Text: `encode_json` has checked it already


def _blocks(value: Any, *, text_alone: bool) -> list[dict[str, Any]] | None:
    if value is None:
        return []
    if isinstance(value, str):
        return [Text(value).to_wire()]
    if isinstance(value, BLOCKS):
        return [value.to_wire()]
    if not isinstance(value, _SEQUENCE) or not all(isinstance(item, (str, *BLOCKS)) for item in value):
        return None
    if text_alone or any(isinstance(item, BLOCKS) for item in value):
        return [Text(item).to_wire() if isinstance(item, str) else item.to_wire() for item in value]
    return None  # a list of strings that nothing marks as content is data


def _is_content(annotation: Any, *, item: bool = False) -> bool:
    """None, str, blocks, unions of them, and lists or tuples that may hold blocks."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_content(arguments[0], item=item)
    if origin in _UNION:
        return all(_is_content(member, item=item) for member in arguments)
    if origin in _SEQUENCE and not item:
        members = [member for member in arguments if member is not Ellipsis]
        return _mentions_block(annotation) and all(_is_content(member, item=True) for member in members)
    return annotation in (str, *BLOCKS) or (annotation in (None, NoneType) and not item)


def _mentions_block(annotation: Any) -> bool:
    return annotation in BLOCKS or any(map(_mentions_block, _type_arguments(annotation)))


def _type_arguments(annotation: Any) -> tuple[Any, ...]:
    arguments = get_args(annotation)
    return arguments[:1] if get_origin(annotation) is Annotated else arguments
