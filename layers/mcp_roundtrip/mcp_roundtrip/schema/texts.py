"""Arguments that arrive as text: those of prompts, and the variables of URI templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from inspect import isclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from pydantic import BaseModel

from mcp_roundtrip.errors import ArgumentsError, DefinitionError
from mcp_roundtrip.schema.signature import Arguments


class Texts(Arguments):
    """Arguments whose values are strings on the wire, and whatever the annotations make of them in Python."""

    @classmethod
    def of(cls, function: Callable[..., Any], context_types: tuple[type, ...]) -> Texts:
        """Read `function`. Raises DefinitionError, also for a parameter that no text can be read as."""
        arguments = super().of(function, context_types)
        for parameter in arguments.signature.parameters:
            if not _is_from_text(parameter.annotation):
                raise DefinitionError(
                    f"{arguments.signature.name}: parameter {parameter.name!r} has to be one value: "
                    "it arrives as text"
                )
        return cls(arguments.signature)

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function. Raises ArgumentsError, quoting no value sent."""
        wrong = sorted(name for name, value in raw.items() if not isinstance(value, str))
        if wrong:
            raise ArgumentsError(
                "\n".join(f"arguments.{name[:128]}: must be a string" for name in wrong[:20])
            )
        return super().validate(raw)

    def choices(self, name: str) -> tuple[str, ...]:
        """The values a parameter can have, if its annotation counts them."""
        for parameter in self.signature.parameters:
            if parameter.name == name:
                return tuple(_choices(parameter.annotation))
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments' names, in their order."""
        return tuple(parameter.name for parameter in self.signature.parameters)


def _is_from_text(annotation: Any) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_from_text(arguments[0])
    if origin in (Union, UnionType):
        return any(_is_from_text(member) for member in arguments if member is not NoneType)
    if origin is Literal:
        return True
    structured = is_dataclass(annotation) or is_typeddict(annotation)
    if origin is not None or structured or not isclass(annotation):
        return annotation is Any
    return not issubclass(annotation, (BaseModel, dict, list, tuple, set, frozenset))


def _choices(annotation: Any) -> list[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _choices(arguments[0])
    if origin in (Union, UnionType):
        return [choice for member in arguments for choice in _choices(member)]
    if origin is Literal:
        return [choice for choice in arguments if isinstance(choice, str)]
    if isclass(annotation) and issubclass(annotation, Enum):
        return [member.value for member in annotation if isinstance(member.value, str)]
    return []
