"""Form elicitation: a type becomes `requestedSchema`, an answer becomes a value of that type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from inspect import isclass
from types import NoneType
from typing import Annotated, Any, NotRequired, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict, is_typeddict  # pydantic refuses typing's before Python 3.12

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidAnswer
from mcp_roundtrip.schema.exact_reader import ExactReader, InvalidValue
from mcp_roundtrip.schema.signature import type_name

VALUE = "value"
"""The one property of a form made from a single-field type."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What is asked, and how an answer is read. `requested_schema` must not be changed by the caller."""

    requested_schema: dict[str, Any]
    reader: ExactReader
    single: bool

    @classmethod
    def of(cls, model: Any) -> Form:
        """A form for a flat pydantic model, dataclass or TypedDict, or for one field of any other type.

        Raises DefinitionError that names the field a form cannot hold, and says why.
        """
        if isclass(model):
            return _of_class(model)  # type: ignore[arg-type]  # every class has a hash
        try:
            return _of_alias(model, repr(model))
        except TypeError:  # not hashable
            return _build(model)

    @property
    def is_confirmation(self) -> bool:
        """Whether the fields it requires, or all of them if it requires none, are booleans."""
        properties = self.requested_schema["properties"]
        names = self.requested_schema.get("required") or properties
        return bool(names) and all(properties[name]["type"] == "boolean" for name in names)

    def parse(self, content: Any) -> Any:
        """The value in an accepted answer's `content`.

        Raises InvalidAnswer; its reason says where and what, and never quotes the answer.
        """
        if not isinstance(content, Mapping):
            raise InvalidAnswer("answer: Input should be an object")
        try:
            value = self.reader.read(content)
        except InvalidValue as error:
            raise InvalidAnswer(str(error)) from None
        return value.get(VALUE) if self.single else value


def _build(model: Any) -> Form:
    from mcp_roundtrip.schema.form_schema import requested_schema  # only a run that asks pays for it

    single = not _has_fields(model)
    name = getattr(model, "__name__", None) or type_name(model)
    if isinstance(model, BaseModel) or (is_dataclass(model) and not isclass(model)):
        kind = type(model).__name__
        raise DefinitionError(f"the model is an instance of {kind}; pass the class {kind}")
    try:
        types: TypeAdapter[Any] = TypeAdapter(_record(model) if single else model)
        schema, nullable = requested_schema(types)
        # Clients send null for a field that was left empty. The type knows which fields are required.
        checked = {"type": "object", "properties": schema["properties"]}
        return Form(schema, ExactReader.of(types, lambda: checked, "", nullable=nullable), single)
    except DefinitionError as error:
        raise DefinitionError(f"form {name}: {error}") from None
    except Exception as error:  # an annotation of the author's may raise anything
        from mcp_roundtrip.schema.type_errors import reason  # for the author of a mistake

        raise DefinitionError(f"form {name}: {reason(model, error)}") from None


_of_class = lru_cache(maxsize=256)(_build)


@lru_cache(maxsize=64)
def _of_alias(model: Any, spelling: str) -> Form:
    """By its spelling, too: Literal["a", "b"] equals Literal["b", "a"], and their forms differ."""
    return _build(model)


def _has_fields(model: Any) -> bool:
    if isclass(model) and issubclass(model, BaseModel):
        return not model.__pydantic_root_model__  # RootModel itself costs its import
    return (isclass(model) and is_dataclass(model)) or is_typeddict(model)


def _record(annotation: Any) -> Any:
    record: Any = TypedDict("Answer", {VALUE: _optional(annotation)})  # type: ignore[misc]  # dynamic
    return record


def _optional(annotation: Any) -> Any:
    """`X | None` may be left out: a form has no way to answer null."""
    inner = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return NotRequired[annotation] if NoneType in get_args(inner) else annotation
