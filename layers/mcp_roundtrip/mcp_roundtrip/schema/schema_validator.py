"""Validation of JSON data by a JSON Schema: jsonschema-rs decides, in linear time.

Its own errors are not used: those of alternatives within alternatives take exponential time and memory.
`explanation` finds the reasons of a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Self

import jsonschema_rs
from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.subschemas import DIALECTS, dialect_of
from mcp_roundtrip.schema.type_adapters import format_location


class SchemaValidator(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """A compiled JSON Schema. Do not change `schema`."""

    schema: Mapping[str, Any]
    whole: jsonschema_rs.Validator

    @classmethod
    def compile(cls, schema: Mapping[str, Any], name: str = "schema") -> Self:
        """Compile a schema of one of `DIALECTS`, with formats asserted. `name` is its name in messages.

        Raises DefinitionError for what the dialect does not allow, and for a `$ref` to nothing.
        """
        try:
            return cls(schema, _compile(schema))
        except jsonschema_rs.ValidationError as error:
            place = format_location(name, error.instance_path)
            if error.kind.name == "$ref":
                problem = f"a $ref leads nowhere: {error.message}; define it under $defs"
            else:
                problem = f"{error.message}; write what {dialect_of(schema)} allows"
            raise DefinitionError(f"{place}: {problem}") from None

    def is_valid(self, value: Any) -> bool:
        """Return whether JSON data is valid."""
        return _is_valid(self.whole, value)

    def is_valid_by(self, pointer: str, value: Any) -> bool:
        """Return whether JSON data is valid by the subschema at a JSON pointer, such as ``#/$defs/size``."""
        part = self._parts.get(pointer)
        return part is None or _is_valid(part, value)

    def is_valid_member(self, name: str, value: Any) -> bool:
        """Return whether JSON data is valid by the property of this name."""
        return self.is_valid_by(f"#/properties/{escaped(name)}", value)

    def satisfies(self, rule: Mapping[str, Any], value: Any) -> bool:
        """Return whether JSON data is valid by keywords of this schema that refer to no other place."""
        dialect = {"$schema": dialect_of(self.schema)}
        return _is_valid(_compile({**dialect, **rule}), value)

    @cached_property
    def _parts(self) -> jsonschema_rs.ValidatorMap:
        return jsonschema_rs.validator_map_for(dict(self.schema), **_options())


def escaped(name: str) -> str:
    """Return a name as a step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _is_valid(validator: jsonschema_rs.Validator, value: Any) -> bool:
    try:
        return validator.is_valid(value)
    except UnicodeEncodeError:  # half of a surrogate pair, which only the escapes of JSON can write
        return validator.is_valid(_replace_surrogates(value))


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(member) for name, member in value.items()}
    return list(map(_replace_surrogates, value)) if isinstance(value, list) else value


def _compile(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    dialect: type[jsonschema_rs.Validator] = getattr(jsonschema_rs, DIALECTS[dialect_of(schema)])
    return dialect(dict(schema), **_options())


def _options() -> dict[str, Any]:
    # The default engine backtracks. A document of the network is never fetched.
    engine = jsonschema_rs.RegexOptions()
    return {
        "pattern_options": engine,
        "validate_formats": True,
        "formats": _FORMATS,
        "offline": True,
    }


def _is_base64(text: str) -> bool:
    # pydantic skips what is no Base64: it reads "%%" as no bytes.
    return (
        re.fullmatch(r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?", text)
        is not None
    )


_FORMATS: Final = {"base64": _is_base64, "base64url": _is_base64}
"""pydantic's formats, which jsonschema-rs does not know."""
