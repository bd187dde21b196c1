"""Form elicitation: `requestedSchema` from a type, and a value of that type from an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from inspect import isclass
from types import FunctionType, NoneType
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin

from msgspec import Struct
from pydantic.fields import Field
from pydantic.main import BaseModel
from pydantic.type_adapter import TypeAdapter
from typing_extensions import TypedDict, is_typeddict  # pydantic refuses typing's before Python 3.12

from mcp_roundtrip.arguments.argument_types import explain_type_error
from mcp_roundtrip.arguments.signature import type_name, unwrap_alias
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidAnswer, InvalidValue
from mcp_roundtrip.schema.exact_reader import ExactReader

SINGLE_FIELD = "value"
"""The one property of a form made from a single-field type."""


class Form(Struct, frozen=True, eq=False):
    """The schema of a question and the reader of its answers. Do not change `requested_schema`."""

    requested_schema: dict[str, Any]
    reader: ExactReader
    is_single_field: bool

    @classmethod
    def from_model(cls, model: Any) -> Form:
        """Create the form of a flat pydantic model, dataclass or TypedDict, or one field of any other type.

        Raises DefinitionError that names the field a form cannot hold, and the reason.
        """
        if isclass(model):
            return _form_of_class(model)  # type: ignore[arg-type]  # every class has a hash
        try:
            return _form_of_alias(model, repr(model))
        except TypeError:  # not hashable
            return _build(model)

    @property
    def is_confirmation(self) -> bool:
        """Whether all required fields, or all fields if none is required, are booleans."""
        properties = self.requested_schema["properties"]
        names = self.requested_schema.get("required") or properties
        return bool(names) and all(properties[name]["type"] == "boolean" for name in names)

    def parse(self, content: Mapping[str, Any]) -> Any:
        """Return the value of an accepted answer's `content`. A field with a default may be null or "".

        Raises InvalidAnswer, whose reason has one line per problem and never quotes the answer.
        """
        try:
            value = self.reader.read(self.reader.without_empty(content, self._optional_names))
        except InvalidValue as error:
            raise InvalidAnswer(self._with_titles(str(error)), error.text_for_log()) from None
        return value.get(SINGLE_FIELD) if self.is_single_field else value

    def _with_titles(self, problems: str) -> str:
        """Replace the field's name, with which each line begins, by the title that the user sees."""
        titles = {name: each.get("title") for name, each in self.requested_schema["properties"].items()}
        return re.sub(r"(?m)^[^:.[\n]+(?=[:.[])", lambda found: titles.get(found[0]) or found[0], problems)

    @property
    def _optional_names(self) -> set[str]:
        names: set[str] = set(self.requested_schema["properties"])
        return names.difference(self.requested_schema.get("required", ()))


def one_of(options: Iterable[str], *, description: str | None = None) -> type[str]:
    """Create the type of a question that offers `options` in their order; the answer is one of them.

    For choices that are known only at run time: `ctx.elicit("place", "Which?", one_of(names))`. Raises
    DefinitionError for no options, and for an option that occurs twice.
    """
    values = tuple(options)
    if not values or len(set(values)) < len(values):
        problem = f"has {values[0]!r:.100} or another option twice" if values else "has no options"
        raise DefinitionError(f"one_of {problem}; pass at least one option, and each of them once")
    model: Any = Annotated[Literal[values], Field(description=description)]
    return model  # type: ignore[no-any-return]  # the answer is a str


def _build(model: Any) -> Form:
    from mcp_roundtrip.forms.form_schema import requested_schema  # slow to import

    single = not _has_fields(model)
    name = getattr(model, "__name__", None) or type_name(model)
    if problem := _value_problem(model):
        raise DefinitionError(f"the model is {problem}")
    try:
        types: TypeAdapter[Any] = TypeAdapter(_single_field_type(model) if single else model)
        schema, nullable = requested_schema(types)
        # Clients send null for a field that was left empty. pydantic checks which fields are required.
        checked = {"type": "object", "properties": schema["properties"]}
        return Form(schema, ExactReader.from_types(types, lambda: checked, "", nullable=nullable), single)
    except DefinitionError as error:
        raise DefinitionError(f"form {name}: {error}") from None
    except Exception as error:  # an annotation of the author's may raise anything
        raise DefinitionError(f"form {name}: {explain_type_error(model, error)}") from None


def _value_problem(model: Any) -> str | None:
    """Return what a value in the place of a type is, and the remedy; None for a type."""
    kind = type(model).__name__
    if isclass(model):
        return None
    if isinstance(model, BaseModel) or is_dataclass(model):
        return f"an instance of {kind}; pass the class {kind}"
    if isinstance(model, Mapping):
        return f"a value of type {kind}; write a flat pydantic model, or pass one_of(names) for a choice"
    if isinstance(model, Collection | Iterator) and not isinstance(model, str | bytes):
        return f"a value of type {kind}; pass one_of(names) for a choice of texts, or Literal['a', 'b']"
    if isinstance(model, str | bytes | int | float | FunctionType):
        return f"a value of type {kind}; pass a flat pydantic model, or a type such as str, bool or Literal"
    return None


_form_of_class = lru_cache(maxsize=256)(_build)


@lru_cache(maxsize=64)
def _form_of_alias(model: Any, spelling: str) -> Form:
    # Cached by spelling, too: Literal["a", "b"] equals Literal["b", "a"], but their forms differ.
    return _build(model)


def _has_fields(model: Any) -> bool:
    if isclass(model) and issubclass(model, BaseModel):
        return not model.__pydantic_root_model__  # RootModel itself costs its import
    return (isclass(model) and is_dataclass(model)) or is_typeddict(model)


def _single_field_type(annotation: Any) -> Any:
    record: Any = TypedDict("Answer", {SINGLE_FIELD: _optional(annotation)})  # type: ignore[misc]  # dynamic
    return record


def _optional(annotation: Any) -> Any:
    """Make `X | None` optional: a form cannot answer null."""
    inner = unwrap_alias(annotation)
    inner = unwrap_alias(get_args(inner)[0]) if get_origin(inner) is Annotated else inner
    return NotRequired[annotation] if NoneType in get_args(inner) else annotation
