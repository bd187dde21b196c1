"""What a function's signature says, read once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, get_origin, get_type_hints

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.docstring import Docstring, parse

_POSITIONAL: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "collects positional arguments",
    inspect.Parameter.VAR_KEYWORD: "collects arbitrary arguments",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, the one for the context set apart, with annotations resolved."""

    name: str
    parameters: tuple[inspect.Parameter, ...]
    context_parameter: str | None
    is_async: bool
    docstring: Docstring

    @classmethod
    def of(cls, function: Callable[..., Any], context_types: tuple[type, ...]) -> Signature:
        """Read `function`; a parameter annotated with one of `context_types` is its context.

        Raises DefinitionError for a parameter that cannot be passed by name, for a second context, and
        for an annotation that does not exist at run time.
        """
        name = name_of(function)
        hints = type_hints(function)
        parameters: list[inspect.Parameter] = []
        contexts: list[str] = []
        for parameter in inspect.signature(function).parameters.values():
            if problem := _POSITIONAL.get(parameter.kind):
                raise DefinitionError(
                    f"{name}: parameter {parameter.name!r} {problem}; a call names every argument"
                )
            annotation = hints.get(parameter.name, parameter.empty)
            if _is_context(annotation, context_types):
                contexts.append(parameter.name)
            else:
                parameters.append(parameter.replace(annotation=annotation))
        if len(contexts) > 1:
            raise DefinitionError(f"{name}: {' and '.join(contexts)} are both annotated as the context")
        return cls(
            name=name,
            parameters=tuple(parameters),
            context_parameter=contexts[0] if contexts else None,
            is_async=_is_async(function),
            docstring=parse(underlying(function).__doc__),
        )


@dataclass(frozen=True, eq=False)
class Described:
    """What a tool's function looks like from outside, however it takes its arguments."""

    signature: Signature

    @property
    def context_parameter(self) -> str | None:
        """The name of the parameter that takes the Context, if there is one."""
        return self.signature.context_parameter

    @property
    def is_async(self) -> bool:
        return self.signature.is_async

    @property
    def description(self) -> str:
        """The docstring without its parameter section."""
        return self.signature.docstring.prose


def name_of(function: Callable[..., Any]) -> str:
    """The name to use in messages to the author."""
    target = underlying(function)
    return str(getattr(target, "__name__", None) or type(target).__name__)


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` without its `functools.partial` layers."""
    while isinstance(function, partial):
        function = function.func
    return function


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of `function`, strings evaluated; raises DefinitionError for one that cannot be."""
    target = underlying(function)
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{name_of(function)}: the annotation {error.name!r} does not exist at run time; "
            "define it at module level and import it outside `if TYPE_CHECKING:`"
        ) from None
    except Exception as error:
        raise DefinitionError(f"{name_of(function)}: cannot evaluate the annotations: {error}") from None


def _is_context(annotation: Any, context_types: tuple[type, ...]) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return inspect.isclass(annotation) and issubclass(annotation, context_types)


def _is_async(function: Callable[..., Any]) -> bool:
    target = underlying(function)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
        getattr(type(target), "__call__", None)  # noqa: B004 - not "is it callable?" but "how is it?"
    )
