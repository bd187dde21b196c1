"""Types that JSON has: `str`, `int`, `float`, `bool`, `None`, and lists and dicts of these.

Their values are read, written and asked for without pydantic, whose import takes half of a cold start, if
pydantic would do the same. All other values, and all errors, are left to pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, isclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired, TypedDict, Union, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from mcp_roundtrip.arguments.signature import Signature
from mcp_roundtrip.protocol.constants import SINGLE_FIELD
from mcp_roundtrip.protocol.strict_json import compact_json, has_half_of_a_pair, parse_json

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.elicitation_form import Form

_SCALARS: Final = frozenset({str, int, float, bool, NoneType})

_MAX_VALUES: Final = 1_000
"""JSON values in the text of an argument. pydantic reads longer texts."""

_UNTYPED: Final = (Any, object, Parameter.empty)
_CLASSES: Final = _SCALARS | {list, dict, Any}


class JsonReader(Struct, frozen=True, eq=False):
    """Reads the arguments of a function whose parameters all have such a type.

    `names` are those of all parameters, `text_names` of those that accept text.
    """

    names: frozenset[str]
    decoder: Decoder[dict[str, Any]]
    defaults: dict[str, Any]
    text_names: frozenset[str]

    @classmethod
    def from_signature(cls, signature: Signature) -> JsonReader | None:
        """Return a reader, or None for a parameter of another type, or with a default that is copied."""
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for parameter in signature.parameters:
            if not _is_read(parameter.annotation):
                return None
            if parameter.default is Parameter.empty:
                fields[parameter.name] = parameter.annotation
            elif type(parameter.default) in _SCALARS:
                fields[parameter.name] = NotRequired[parameter.annotation]
                defaults[parameter.name] = parameter.default
            else:
                return None
        record: Any = TypedDict(f"{signature.name} arguments", fields)  # type: ignore[misc]  # dynamic
        text_names = frozenset(each.name for each in signature.parameters if _is_text(each.annotation))
        return cls(frozenset(fields), Decoder(record), defaults, text_names)

    def read(self, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return keyword arguments from JSON, or None to leave it to pydantic."""
        if not raw.keys() <= self.names:
            return None
        try:
            return self.defaults | self.decoder.decode(compact_json(raw))
        except (ValueError, TypeError):
            return None

    def read_texts(self, raw: Mapping[str, str]) -> dict[str, Any] | None:
        """Return keyword arguments from strings, which are JSON for other types than text, or None."""
        if not raw.keys() <= self.names:
            return None
        try:
            parsed = {
                name: text if name in self.text_names else parse_json(text, max_values=_MAX_VALUES)
                for name, text in raw.items()
            }
        except ValueError:
            return None
        return self.read(parsed)


def _is_text(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return annotation is str or (origin in (Union, UnionType) and str in get_args(annotation))


def _is_read(annotation: Any) -> bool:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):  # of two types pydantic chooses by rules of its own
        return len(inner) == 2 and NoneType in inner and all(map(_is_read, inner))
    if (origin is list and inner) or (origin is dict and inner[:1] == (str,)):  # typing.List has none
        return _is_read(inner[-1])
    return any(annotation is each for each in _SCALARS)  # `in` hashes, and Annotated[str, []] has no hash


def is_json_type(annotation: Any) -> bool:
    """Return whether a type is one of these, or a union of them. Items may be Any."""
    if isclass(annotation):  # most are, and every replayed step asks
        return annotation in _CLASSES
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return all(map(is_json_type, inner))
    if (origin is list and inner) or (origin is dict and inner[:1] in ((str,), (Any,))):
        return is_json_type(inner[-1])
    return False


def json_text(value: Any, annotation: Any) -> str | None:
    """Return the JSON text of a value that has exactly this type, else None."""
    try:
        return msgspec.json.encode(value).decode() if _has_type(value, annotation) else None
    except (ValueError, RecursionError):  # half of a surrogate pair; a value that contains itself
        return None


def _has_type(value: Any, annotation: Any) -> bool:
    kind = type(value)
    if kind in _SCALARS and (annotation is kind or annotation in _UNTYPED):
        # pydantic writes other floats in another notation
        return kind is not float or value == 0 or bool(1e-5 <= abs(value) < 1e16)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return any(_has_type(value, each) for each in inner)
    if annotation not in _UNTYPED and kind is not (origin or annotation):
        return False
    item = inner[-1] if inner else Any
    if kind is list:
        return all(_has_type(each, item) for each in value)
    if kind is dict and (not inner or inner[0] in (str, Any)):
        return all(type(name) is str and _has_type(each, item) for name, each in value.items())
    return False


_FIELDS: Final[Mapping[Any, str]] = {bool: "boolean", int: "integer", float: "number", str: "string"}


class JsonForm(Struct, frozen=True):
    """A form of one field of these types, or a choice of texts. `field` is the JSON Schema of the field."""

    model: Any
    field: dict[str, Any]

    @property
    def requested_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {SINGLE_FIELD: self.field}, "required": [SINGLE_FIELD]}

    def parse(self, content: Mapping[str, Any]) -> Any:
        """Return the value of an accepted answer's `content`. Raises InvalidAnswer."""
        value = content.get(SINGLE_FIELD)
        return value if len(content) == 1 and self._has(value) else _typed_form(self.model).parse(content)

    def _has(self, value: Any) -> bool:
        if isinstance(value, str) and has_half_of_a_pair(value):
            return False
        return value in self.field["enum"] if "enum" in self.field else type(value) is self.model


def form_of(model: Any) -> Form | JsonForm:
    """Return the form that asks for a value of a type. Raises DefinitionError for what no form can hold."""
    field = _field(model)
    return _typed_form(model) if field is None else JsonForm(model, field)


def _field(model: Any) -> dict[str, Any] | None:
    options = get_args(model) if get_origin(model) is Literal else ()
    if options and all(type(each) is str for each in options):
        return {"type": "string", "enum": [*options]}
    # `in` would hash the type, and Annotated[str, []] has no hash.
    return next(({"type": name} for each, name in _FIELDS.items() if model is each), None)


def _typed_form(model: Any) -> Form:
    from mcp_roundtrip.arguments.elicitation_form import Form  # imports pydantic

    return Form.from_model(model)
