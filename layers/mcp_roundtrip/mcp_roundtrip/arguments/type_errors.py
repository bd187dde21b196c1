"""Messages for types that pydantic cannot use or describe, with a type to use instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NotRequired, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import SchemaError

from mcp_roundtrip.arguments.signature import type_name
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.json_schema import build_json_schema
from mcp_roundtrip.schema.patterns import NOT_COMPILED

SUPPORTED_TYPES: Final = (
    "use a type such as str, int, bool, datetime, list[str], a dataclass or a pydantic model"
)

_UNKNOWN: Final = re.compile(r"schema for (?:<class '(?P<name>[^']+)'>|(?P<other>.{1,200}?))\. Set ")


def first_type_error(annotations: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first parameter that pydantic cannot use or describe on its own, and the reason."""
    for name, annotation in annotations.items():
        inner = get_args(annotation)[0] if get_origin(annotation) is NotRequired else annotation
        try:
            build_json_schema(TypeAdapter(inner))
        except Exception as error:  # an annotation of the author's may raise anything
            return f"parameter {name!r}: ", explain_type_error(inner, error)
    return None


def explain_type_error(annotation: Any, error: Exception) -> str:
    """Return one line that explains pydantic's error for a type, and ends with a remedy."""
    if isinstance(error, DefinitionError):
        return str(error)
    if isinstance(error, SchemaError) and "regex" in str(error).lower():
        return f"the pattern of {_text(annotation)} {NOT_COMPILED}"
    code = getattr(error, "code", None)
    if code == "schema-for-unknown-type" and (found := _UNKNOWN.search(str(error))):
        name = (found["name"] or found["other"]).rpartition(".")[2]
        if name.endswith("Context"):
            return f"{name} is not this package's; import Context or AsyncContext from mcp_roundtrip"
        return f"{name} cannot be written as JSON; {SUPPORTED_TYPES}"
    if isinstance(error, PydanticUndefinedAnnotation):
        return f"the type {error.name!r} is not defined; define it at module level, before its use"
    if code == "class-not-fully-defined":
        return f"{_text(annotation)} refers to a type that is not defined; define that type at module level"
    if code == "invalid-for-json-schema":
        return f"JSON Schema cannot describe {_text(annotation)}; {SUPPORTED_TYPES}"
    first = str(error).partition("\n")[0].rstrip(".")
    return f"pydantic cannot use {_text(annotation)} ({type(error).__name__}: {first}); {SUPPORTED_TYPES}"


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else type_name(annotation)
