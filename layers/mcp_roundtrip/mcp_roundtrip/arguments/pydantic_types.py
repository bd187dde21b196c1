"""The types of a function's parameters as pydantic reads them, and messages for types that it cannot use."""

from __future__ import annotations

import re
from functools import cached_property
from inspect import Parameter
from typing import Annotated, Any, Final, NotRequired, get_args, get_origin

from msgspec import Struct
from pydantic.config import ConfigDict, with_config
from pydantic.fields import Field, FieldInfo
from pydantic.type_adapter import TypeAdapter
from pydantic_core import SchemaError
from typing_extensions import TypedDict  # pydantic refuses typing's before Python 3.12

from mcp_roundtrip.arguments.mcp_header import ParameterHeaders, headers_of_schema
from mcp_roundtrip.arguments.signature import Signature, type_name
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import named_errors
from mcp_roundtrip.schema.input_validation import TypedReader
from mcp_roundtrip.schema.json_schema_generator import build_json_schema
from mcp_roundtrip.schema.pattern_checks import NOT_COMPILED
from mcp_roundtrip.schema.subschemas import bounded_subschemas


class ArgumentTypes(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The types of the parameters, and their `names` in JSON."""

    signature: Signature
    names: tuple[str, ...]
    parameter_headers: ParameterHeaders

    @cached_property
    def reader(self) -> TypedReader:
        """The reader of the arguments. Raises DefinitionError."""
        # A TypedDict, not a model: parameters may be named `json`, `copy` or `_id`, and the result is a dict.
        fields = {parameter.name: self._field(parameter) for parameter in self.signature.parameters}
        named = zip(self.names, self.signature.parameters, strict=True)
        optional = frozenset(name for name, parameter in named if _has_default(parameter))
        try:
            record: Any = TypedDict(f"{self.signature.name} arguments", fields)  # type: ignore[misc]  # dynamic
            types: TypeAdapter[Any] = TypeAdapter(with_config(ConfigDict(extra="forbid"))(record))
            return TypedReader(lambda: self.json_schema, "arguments", optional, types=types)
        except DefinitionError as error:
            raise DefinitionError(f"{self.signature.name}: {error}") from None
        except Exception as error:  # an author's annotation may raise anything
            raise self._unusable(error) from None

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """The `inputSchema`. Raises DefinitionError."""
        if not self.signature.parameters:
            # JSON Schema needs no `properties`, but smolagents and the API of OpenAI do.
            return {"type": "object", "properties": {}, "additionalProperties": False}
        types = self.reader.types
        try:
            schema = build_json_schema(types)
        except Exception as error:  # as above
            raise self._unusable(error) from None
        with named_errors(self.signature.name):
            headers = headers_of_schema(schema, bounded_subschemas(schema))
            if headers != self.parameter_headers:  # calls are checked against the parameters' own headers
                raise DefinitionError(
                    "the schema of a type declares x-mcp-header; write McpHeader on a parameter of the tool "
                    "instead"
                )
        return schema

    def _unusable(self, error: Exception) -> DefinitionError:
        problem = explain_type_error(self.signature.name, error)
        for parameter in self.signature.parameters:
            own_type = self._field(parameter)
            inner = get_args(own_type)[0] if get_origin(own_type) is NotRequired else own_type
            try:
                build_json_schema(TypeAdapter(inner))
            except Exception as own:  # an annotation of the author's may raise anything
                problem = f"parameter {parameter.name!r}: {explain_type_error(inner, own)}"
                break
        return DefinitionError(f"{self.signature.name}: {problem}")

    def _field(self, parameter: Parameter) -> Any:
        metadata: list[Any] = []
        if description := self.signature.descriptions.get(parameter.name):
            metadata.append(Field(description=description))
        base, own = _parts(parameter.annotation)
        metadata += own  # later metadata wins: Field(description=) replaces the docstring's text
        if isinstance(parameter.default, FieldInfo):
            metadata.append(parameter.default)
        elif parameter.default is not Parameter.empty:
            metadata.append(Field(default=parameter.default))
        annotation = Annotated[(base, *metadata)] if metadata else base
        return NotRequired[annotation] if _has_default(parameter) else annotation


def _has_default(parameter: Parameter) -> bool:
    fields = [item for item in _parts(parameter.annotation)[1] if isinstance(item, FieldInfo)]
    if isinstance(parameter.default, FieldInfo):
        fields.append(parameter.default)
    elif parameter.default is not Parameter.empty:
        return True
    return any(not each.is_required() for each in fields)


def _parts(annotation: Any) -> tuple[Any, list[Any]]:
    base, *metadata = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return base, metadata


# -- messages for types that pydantic cannot use or describe

SUPPORTED_TYPES: Final = (
    "use a type such as str, int, bool, datetime, list[str], a dataclass or a pydantic model"
)

_UNKNOWN: Final = r"schema for (?:<class '(?P<name>[^']+)'>|(?P<other>.{1,200}?))\. Set "


def explain_type_error(annotation: Any, error: Exception) -> str:
    """Explain pydantic's error for a type on one line, with a remedy."""
    if isinstance(error, DefinitionError):
        return str(error)
    if isinstance(error, SchemaError) and "regex" in str(error).lower():
        return f"the pattern of {type_name(annotation)} {NOT_COMPILED}"
    code = getattr(error, "code", None)
    if found := re.search(_UNKNOWN, str(error)):
        name = type_name(found["name"] or found["other"])
        if name.endswith("Context"):
            return f"{name} is not this package's; import Context or AsyncContext from mcp_roundtrip"
        return f"{name} cannot be written as JSON; {SUPPORTED_TYPES}"
    if code == "class-not-fully-defined":
        return f"{type_name(annotation)} refers to an undefined type; define that type at module level"
    if code == "invalid-for-json-schema":
        return f"JSON Schema cannot describe {type_name(annotation)}; {SUPPORTED_TYPES}"
    lines = str(error).splitlines() or [""]
    # The last line of a SchemaError has the reason.
    line = lines[-1].removeprefix("SchemaError: ") if isinstance(error, SchemaError) else lines[0]
    problem = f"{type(error).__name__}: {line.strip(' .')}"
    return f"pydantic cannot use {type_name(annotation)} ({problem}); {SUPPORTED_TYPES}"
