"""A tool's result: outputSchema from the return annotation, content and structuredContent from a value."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from functools import cached_property
from inspect import Signature, isclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mcp_roundtrip.arguments.signature import (
    function_name,
    is_alias,
    resolve_type_hints,
    type_name,
    unwrap_alias,
)
from mcp_roundtrip.arguments.typed_arguments import explain_type_error
from mcp_roundtrip.content.block_base import ContentBlock, text_block
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.schema.core_schemas import is_plain_to_write, nodes
from mcp_roundtrip.schema.exact_reader import invalid_value
from mcp_roundtrip.schema.type_adapters import (
    TYPE_ERRORS,
    JsonResult,
    RepeatedName,
    locate_unserializable,
    read_plain,
    read_written,
    to_json,
    type_adapter,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from mcp_roundtrip.schema.schema_validator import SchemaValidator


class NoStructuredContent(Enum):
    """Marks a result without `structuredContent`; None is the `structuredContent` null."""

    MARK = "no structuredContent"


NO_STRUCTURED_CONTENT: Final = NoStructuredContent.MARK

_UNTYPED = (Signature.empty, Any, object, list, tuple)
"""Annotations that do not say whether the function returns content blocks or data."""

_UNION = (Union, UnionType)
_SEQUENCE = (list, tuple)


class _Kind(Enum):
    UNTYPED = "by the value"
    CONTENT = "content blocks, text or nothing"
    STRUCTURED = "by the outputSchema"


class Output(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The outputSchema of a function and the serialization of its results."""

    name: str
    annotation: Any
    kind: _Kind

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Output:
        """Read the return annotation of `function`.

        Raises DefinitionError for an annotation that mixes content blocks with structured values, because no
        outputSchema describes both.
        """
        name = function_name(function)
        annotation = resolve_type_hints(function).get("return", Signature.empty)
        if annotation in _UNTYPED:
            return cls(name, annotation, _Kind.UNTYPED)
        if _is_content(annotation):
            return cls(name, annotation, _Kind.CONTENT)
        if _mentions_block(annotation):
            raise DefinitionError(
                f"{name}: the return type {type_name(annotation)} mixes content blocks with structured "
                "values; return either blocks, str and None, or a model"
            )
        return cls(name, annotation, _Kind.STRUCTURED)

    def json_schema(self) -> dict[str, Any] | None:
        """Return the `outputSchema`, or None. It is built once; do not change it.

        Raises DefinitionError for a type that JSON Schema cannot describe.
        """
        return self._json_schema

    def dump(self, value: Any) -> tuple[list[dict[str, Any]], Any]:
        """Return `content`, and `structuredContent` or NO_STRUCTURED_CONTENT.

        With an outputSchema every value is structured, also None and text, as the specification demands.
        Raises UsageError for a value that does not fit the return type or is not JSON; it names the place
        and quotes no value.
        """
        if self.kind is _Kind.STRUCTURED:
            if isinstance(value, _SEQUENCE) and any(isinstance(item, ContentBlock) for item in value):
                raise UsageError(
                    f"{self.name} returned content blocks, and its return type "
                    f"{type_name(self.annotation)} is for data; write `-> list`"
                )
            return _structured(*self._typed(value))
        blocks = _blocks(value, text_alone=self.kind is _Kind.CONTENT)
        if blocks is not None:
            return blocks, NO_STRUCTURED_CONTENT
        if self.kind is _Kind.CONTENT:
            raise UsageError(
                f"{self.name} returned {type(value).__name__}; return {type_name(self.annotation)}, as "
                "annotated"
            )
        return _structured(*untyped_to_json(self.name, value))

    @cached_property
    def _json_schema(self) -> dict[str, Any] | None:
        if self.kind is not _Kind.STRUCTURED:
            return None
        from mcp_roundtrip.schema.json_schema import build_json_schema  # lists need it, calls do not

        try:
            return build_json_schema(type_adapter(self.annotation), "serialization")
        except Exception as error:  # an author's annotation may raise anything
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> DefinitionError:
        return DefinitionError(f"{self.name}: the return type: {explain_type_error(self.annotation, error)}")

    @cached_property
    def _is_plain(self) -> bool:
        return is_plain_to_write(type_adapter(self.annotation).core_schema)

    @cached_property
    def _validator(self) -> SchemaValidator:
        from mcp_roundtrip.schema.schema_validator import SchemaValidator  # plain types do not need it

        schema = self._json_schema
        assert schema is not None
        return SchemaValidator.compile(schema, f"{self.name}: outputSchema")

    def _typed(self, value: Any) -> JsonResult:
        try:
            types = type_adapter(self.annotation)
            typed, written = _serialize(types, value)
        except TYPE_ERRORS as error:
            raise self._unusable(error) from None
        except ValidationError as error:
            raise UsageError(f"{self._mismatch()}\n{invalid_value(error, 'result')}") from None
        except PydanticSerializationError:
            raise self._not_serialized(types, value) from None
        try:
            read = read_plain if self._is_plain else read_written
            data, text = read(written, typed, types)
        except ValueError as error:
            raise _not_json(self.name, value, error) from None
        if not (self._is_plain and _is_read_back(types, written)):
            self._refuse_invalid(data)
        return data, text

    def _not_serialized(self, types: TypeAdapter[Any], value: Any) -> UsageError:
        """Return the error for a value that pydantic refuses to serialize."""
        place = locate_unserializable(value, "result")
        with suppress(PydanticSerializationError, UnicodeError):
            self._refuse_invalid(types.dump_python(value, mode="json", by_alias=True, warnings=False))
            if place:  # half of a surrogate pair, which text cannot hold
                return _not_json(self.name, value)
        return UsageError(self._mismatch(place))

    def _refuse_invalid(self, data: Any) -> None:
        """Raise UsageError for data that the outputSchema refuses."""
        if problems := self._validator.problems(data, "result"):
            raise UsageError("\n".join([self._mismatch(), *problems]))

    def _mismatch(self, place: str = "") -> str:
        what = f"{self.name} returned a value that does not fit its return type {type_name(self.annotation)}"
        return f"{what}{place}; return what the annotation says, or change it"


def _serialize(types: TypeAdapter[Any], value: Any) -> tuple[Any, bytes]:
    """Return a value of the type, and its JSON text.

    A value of the type is not validated again, because validators may convert it. A value of another type is,
    such as a dict for a model.
    """
    try:
        return value, types.dump_json(value, by_alias=True, warnings="error")
    except PydanticSerializationError:
        typed = types.validate_python(value, by_alias=True, by_name=True)
        return typed, types.dump_json(typed, by_alias=True, warnings="error")


def _is_read_back(types: TypeAdapter[Any], written: bytes) -> bool:
    """Return whether a plain type accepts what was written. Serializers check no limits, and write null."""
    try:
        types.validate_json(written, strict=True)
    except ValidationError:
        return False
    return True


def untyped_to_json(name: str, value: Any) -> JsonResult:
    """Return a result of the function `name` as JSON.

    Raises UsageError, which names the place and quotes no value, for a value that JSON cannot hold.
    """
    try:
        return to_json(value)
    except ValueError as error:
        raise _not_json(name, value, error) from None


def _not_json(name: str, value: Any, error: ValueError | None = None) -> UsageError:
    if isinstance(error, RepeatedName):
        return UsageError(f"{name} returned a dict with two keys that have one name in JSON; use other keys")
    if isinstance(value, Coroutine):
        value.close()
        return UsageError(f"{name} returned a coroutine without awaiting it; write `async def {name}`")
    place = locate_unserializable(value, "result")
    return UsageError(
        f"{name} returned a value that JSON cannot hold{place}; return text, numbers, lists, dicts, models "
        "or dataclasses"
    )


def _structured(data: Any, text: str) -> tuple[list[dict[str, Any]], Any]:
    return [{"type": "text", "text": text}], data  # without Text: the text was UTF-8


def _blocks(value: Any, *, text_alone: bool) -> list[dict[str, Any]] | None:
    if value is None:
        return []
    if isinstance(value, str):
        return [text_block(value)]
    if isinstance(value, ContentBlock):
        return [value.to_wire()]
    if not isinstance(value, _SEQUENCE) or not all(isinstance(item, (str, ContentBlock)) for item in value):
        return None
    if text_alone or any(isinstance(item, ContentBlock) for item in value):
        return [text_block(item) if isinstance(item, str) else item.to_wire() for item in value]
    return None  # without blocks or an annotation, a list of strings is data


def _is_content(annotation: Any, *, item: bool = False) -> bool:
    """Return whether the type is None, str, a block, a union of these, or a list or tuple with blocks."""
    annotation = unwrap_alias(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        has_own = _serializers(annotation) > _serializers(arguments[0])
        return _is_content(arguments[0], item=item) and not has_own
    if origin in _UNION:
        return all(_is_content(member, item=item) for member in arguments)
    if origin in _SEQUENCE and not item:
        members = [member for member in arguments if member is not Ellipsis]
        return _mentions_block(annotation) and all(_is_content(member, item=True) for member in members)
    return annotation is str or _is_block(annotation) or (annotation in (None, NoneType) and not item)


def _serializers(annotation: Any) -> int:
    """Return how many serializers a type has. Those of content blocks are never used."""
    try:
        schema = type_adapter(annotation).core_schema
    except Exception:  # an author's annotation may raise anything; lists and checks say what
        return 0
    return sum("serialization" in node for node in nodes(schema))


def _mentions_block(annotation: Any, aliases: tuple[Any, ...] = ()) -> bool:
    """Return whether a type has blocks in it. `aliases` are those around it, which it may refer to."""
    if is_alias(annotation):
        aliases, annotation = (*aliases, annotation), unwrap_alias(annotation)
    inner = [each for each in _type_arguments(annotation) if each not in aliases]
    return _is_block(annotation) or any(_mentions_block(each, aliases) for each in inner)


def _is_block(annotation: Any) -> bool:
    return isclass(annotation) and issubclass(annotation, ContentBlock)


def _type_arguments(annotation: Any) -> tuple[Any, ...]:
    arguments = get_args(annotation)
    return arguments[:1] if get_origin(annotation) is Annotated else arguments
