"""Arguments that arrive as strings: those of prompts, and the variables of URI templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from inspect import isclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, is_typeddict

from pydantic import BaseModel

from mcp_roundtrip.arguments.signature import type_name, unwrap_alias
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError, InvalidValue


class StringArguments(Arguments, frozen=True, eq=False):
    """Arguments that are strings in JSON and are converted to the types of their annotations."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], context_types: tuple[type, ...]) -> StringArguments:
        """Read a signature. Raises DefinitionError, also for a type that no string can stand for."""
        arguments = super().from_function(function, context_types)
        if arguments.parameter_headers:
            raise DefinitionError(
                f"{arguments.signature.name}: McpHeader is for the parameters of tools; remove it"
            )
        for parameter in arguments.signature.parameters:
            if not _is_string_convertible(parameter.annotation):
                raise DefinitionError(
                    f"{arguments.signature.name}: parameter {parameter.name!r} arrives as text, and "
                    f"{type_name(parameter.annotation)} is not read from one; use str, int, bool, datetime, "
                    "an Enum or another type of one value"
                )
        return cls(arguments.signature)

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function. Raises ArgumentsError, which quotes no value."""
        if None in raw.values():  # null is no string, and counts as left out
            raw = {
                name: value
                for name, value in raw.items()
                if value is not None or name not in self._types.optional_names
            }
        wrong = sorted(name for name, value in raw.items() if not isinstance(value, str))
        if wrong:
            raise ArgumentsError(
                "\n".join(f"arguments.{name[:128]}: must be a string" for name in wrong[:20])
            )
        try:
            values: dict[str, Any] = self._types.reader.read_strings(raw)
        except InvalidValue as error:
            raise ArgumentsError(str(error)) from None
        return values

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the strings that an argument can be, if its annotation is a Literal or an Enum."""
        for own, parameter in zip(self.names, self.signature.parameters, strict=True):
            if own == name:
                return tuple(_choices(parameter.annotation))
        return ()


def _is_string_convertible(annotation: Any) -> bool:
    return any(map(_is_string_convertible_member, _alternatives(annotation)))


def _is_string_convertible_member(annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return any(isinstance(choice, str) for choice in get_args(annotation))
    structured = is_dataclass(annotation) or is_typeddict(annotation)
    if get_origin(annotation) is not None or structured or not isclass(annotation):
        return annotation is Any
    if issubclass(annotation, Enum) and not issubclass(annotation, (int, float)):
        return any(isinstance(member.value, str) for member in annotation)
    return not issubclass(annotation, (BaseModel, dict, list, tuple, set, frozenset, NoneType))


def _choices(annotation: Any) -> Iterator[str]:
    for each in _alternatives(annotation):
        values: list[Any] = []
        if get_origin(each) is Literal:
            values = [*get_args(each)]
        elif isclass(each) and issubclass(each, Enum):
            values = [member.value for member in each]
        yield from (value for value in values if isinstance(value, str))


def _alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, without Annotated, NewType and aliases."""
    annotation = unwrap_alias(annotation)
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _alternatives(member)
    elif isinstance(annotation, NewType):
        yield from _alternatives(annotation.__supertype__)
    else:
        yield annotation
