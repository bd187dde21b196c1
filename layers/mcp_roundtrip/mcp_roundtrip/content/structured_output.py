"""Results with an outputSchema, or without an annotated type, as JSON data and its text."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError

from mcp_roundtrip.arguments.pydantic_types import explain_type_error
from mcp_roundtrip.arguments.signature import type_name
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.protocol.strict_json import RepeatedName
from mcp_roundtrip.schema import serialization
from mcp_roundtrip.schema.core_schema_traversal import is_plain_to_write
from mcp_roundtrip.schema.explain_invalid_json import compile_schema, problem_lines
from mcp_roundtrip.schema.json_schema_generator import build_json_schema
from mcp_roundtrip.schema.pydantic_validator import invalid_value

if TYPE_CHECKING:
    from mcp_roundtrip.schema.json_schema_validator import CompiledSchema


class StructuredOutput(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The outputSchema of the function `name` with this return type, and the serialization of its results."""

    name: str
    annotation: Any

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """The `outputSchema`. Raises DefinitionError for a type that JSON Schema cannot describe."""
        try:
            return build_json_schema(serialization.type_adapter(self.annotation), "serialization")
        except Exception as error:  # an author's annotation may raise anything
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> DefinitionError:
        return DefinitionError(f"{self.name}: the return type: {explain_type_error(self.annotation, error)}")

    @cached_property
    def _is_plain(self) -> bool:
        return is_plain_to_write(serialization.type_adapter(self.annotation).core_schema)

    @cached_property
    def _validator(self) -> CompiledSchema:
        return compile_schema(self.json_schema, f"{self.name}: outputSchema")

    def untyped_to_json(self, value: Any) -> serialization.JsonResult:
        """Return the data and the text of a result without a return type. Raises UsageError, as `to_json`."""
        try:
            return serialization.to_json(value)
        except ValueError as error:
            raise _not_json(self.name, value, error) from None

    def to_json(self, value: Any) -> serialization.JsonResult:
        """Return the data of a result, and its text. Raises UsageError, which quotes no value."""
        try:
            types = serialization.type_adapter(self.annotation)
            typed, written = _serialize(types, value)
        except PydanticUserError as error:
            raise self._unusable(error) from None
        except ValidationError as error:
            raise UsageError(f"{self._mismatch(value)}\n{invalid_value(error, 'result')}") from None
        except PydanticSerializationError:
            raise self._not_serialized(types, value) from None
        try:
            read = serialization.read_plain if self._is_plain else serialization.read_written
            data, text = read(written, typed, types)
        except ValueError as error:
            raise _not_json(self.name, value, error) from None
        if not (self._is_plain and _is_read_back(types, written)):
            self._refuse_invalid(data, value)
        return data, text

    def _not_serialized(self, types: TypeAdapter[Any], value: Any) -> UsageError:
        if iterator := serialization.locate_iterator(value, "result"):
            return UsageError(self._mismatch(value, iterator))
        place = serialization.locate_unserializable(value, "result")
        with suppress(ValueError):  # half of a surrogate pair in a name; a value that contains itself
            self._refuse_invalid(types.dump_python(value, mode="json", by_alias=True, warnings=False), value)
            if place:  # half of a surrogate pair, which text cannot hold
                return _not_json(self.name, value)
        return UsageError(self._mismatch(value, place))

    def _refuse_invalid(self, data: Any, value: Any) -> None:
        if found := problem_lines(self._validator, data, "result"):
            raise UsageError("\n".join([self._mismatch(value), *found]))

    def _mismatch(self, value: Any, place: str = "") -> str:
        what = "None, which" if value is None else "a value that"
        expected = f"does not fit its return type {type_name(self.annotation)}{place}"
        return f"{self.name} returned {what} {expected}; return what the annotation says, or change it"


def _serialize(types: TypeAdapter[Any], value: Any) -> tuple[Any, bytes]:
    """Return a value of the type, and its JSON text.

    Only a value of another type is validated, such as a dict for a model: validators may convert values.
    """
    try:
        return value, types.dump_json(value, by_alias=True, warnings="error")
    except PydanticSerializationError:
        if serialization.locate_iterator(value, "result"):  # it has been read
            raise
        typed = types.validate_python(value, by_alias=True, by_name=True)
        return typed, types.dump_json(typed, by_alias=True, warnings="error")


def _is_read_back(types: TypeAdapter[Any], written: bytes) -> bool:
    """Return whether a plain type accepts the text. Serializers check no limits, and write null."""
    try:
        types.validate_json(written, strict=True)
    except ValidationError:
        return False
    return True


def _not_json(name: str, value: Any, error: ValueError | None = None) -> UsageError:
    if isinstance(error, RepeatedName):
        return UsageError(f"{name} returned a dict with two keys that have one name in JSON; use other keys")
    place = serialization.locate_unserializable(value, "result")
    return UsageError(
        f"{name} returned a value that JSON cannot hold{place}; return text, numbers, lists, dicts, models "
        "or dataclasses"
    )
