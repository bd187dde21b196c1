"""Forms with one field of a type that JSON has, such as a confirmation, without pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.protocol.canonical import has_half_of_a_pair
from mcp_roundtrip.protocol.constants import SINGLE_FIELD

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.elicitation_form import Form

_TYPES: Final[Mapping[Any, str]] = {bool: "boolean", int: "integer", float: "number", str: "string"}


class PlainForm(Struct, frozen=True):
    """The counterpart of `Form`. Answers that do not have exactly the type are read by a `Form`."""

    model: type

    @property
    def requested_schema(self) -> dict[str, Any]:
        field = {"type": _TYPES[self.model]}
        return {"type": "object", "properties": {SINGLE_FIELD: field}, "required": [SINGLE_FIELD]}

    @property
    def is_confirmation(self) -> bool:
        """Whether the field is a boolean."""
        return self.model is bool

    def parse(self, content: Mapping[str, Any]) -> Any:
        """Return the value of an accepted answer's `content`. Raises InvalidAnswer, as `Form` does."""
        value = content.get(SINGLE_FIELD)
        is_broken = isinstance(value, str) and has_half_of_a_pair(value)
        if len(content) == 1 and type(value) is self.model and not is_broken:
            return value
        return _form_of_type(self.model).parse(content)


def form_of(model: Any) -> Form | PlainForm:
    """Return the form that asks for a value of a type. Raises DefinitionError for what no form can hold."""
    # `in` would hash the type, and Annotated[str, []] has no hash.
    return PlainForm(model) if any(model is each for each in _TYPES) else _form_of_type(model)


def _form_of_type(model: Any) -> Form:
    from mcp_roundtrip.arguments.elicitation_form import Form  # imports pydantic

    return Form.from_model(model)
