"""What a function's signature says, read once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.docstring import Docstring, parse

_POSITIONAL: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only; remove the `/` from the signature",
    inspect.Parameter.VAR_POSITIONAL: "collects positional arguments; write one parameter that is a list",
    inspect.Parameter.VAR_KEYWORD: "collects keyword arguments; write one parameter for each argument",
}


_MODULES = re.compile(r"\b(?:\w+\.|<locals>\.)+(?=\w)")
"""What stands before the names of types in the text of an annotation."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, the one for the context set apart, with annotations resolved."""

    name: str
    parameters: tuple[inspect.Parameter, ...]
    context_parameter: str | None
    is_async: bool
    docstring: Docstring
    context_type: type | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], context_types: tuple[type, ...]) -> Signature:
        """Read `function`; a parameter annotated with one of `context_types` is its context.

        Raises DefinitionError for what is no function, a parameter that cannot be passed by name, a second
        context, a context inside another type, and an annotation that does not exist at run time.
        """
        name = function_name(function)
        hints = resolve_type_hints(function)
        parameters: list[inspect.Parameter] = []
        contexts: dict[str, type] = {}
        for parameter in call_parameters(function):
            if problem := _POSITIONAL.get(parameter.kind):
                raise DefinitionError(f"{name}: parameter {parameter.name!r} {problem}")
            annotation = hints.get(parameter.name, parameter.empty)
            if context := _context(annotation, context_types):
                contexts[parameter.name] = context
            elif found := _mentioned(annotation, context_types):
                raise DefinitionError(
                    f"{name}: parameter {parameter.name!r} is annotated with {type_name(annotation)}, and "
                    f"the server always passes a context; write `{parameter.name}: {found.__name__}`"
                )
            else:
                parameters.append(parameter.replace(annotation=annotation))
        if len(contexts) > 1:
            raise DefinitionError(
                f"{name}: parameters {' and '.join(map(repr, contexts))} are both annotated as the context; "
                "keep one of them"
            )
        return cls(
            name=name,
            parameters=tuple(parameters),
            context_parameter=next(iter(contexts), None),
            is_async=_is_async(function),
            docstring=parse(documentation(function)),
            context_type=next(iter(contexts.values()), None),
        )

    def annotated(self) -> Signature:
        """This signature. Raises DefinitionError for a parameter without an annotation."""
        for parameter in self.parameters:
            if parameter.annotation is parameter.empty:
                raise DefinitionError(
                    f"{self.name}: parameter {parameter.name!r} has no annotation; {self._instead(parameter)}"
                )
        return self

    def _instead(self, parameter: inspect.Parameter) -> str:
        if parameter.name in ("self", "cls") and parameter is self.parameters[0]:
            return f"register the method of an instance, such as `server.tool(service.{self.name})`"
        if parameter.name in ("ctx", "context") and self.context_parameter is None:
            return f"write `{parameter.name}: {'AsyncContext' if self.is_async else 'Context'}`"
        return f"write its type, such as `{parameter.name}: str`"


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


def check_callable(decorator: str, function: Any) -> None:
    """Raise DefinitionError for what `decorator` cannot register; messages say what to write."""
    if inspect.isclass(function):
        name = function.__name__
        raise DefinitionError(
            f"{decorator}: {name} is a class; register a function, or an instance whose class defines "
            f"__call__, as in `{decorator}({name}())`"
        )
    if isinstance(function, classmethod):
        name = function.__func__.__name__
        raise DefinitionError(
            f"{decorator}: {name} is a classmethod object; register the bound method below the class, as in "
            f"`{decorator}(Service.{name})`"
        )
    if inspect.isbuiltin(function):
        name = function.__name__
        raise DefinitionError(
            f"{decorator}: {name} is built in without annotations; write a `def` with annotated parameters "
            f"that calls {name}"
        )
    if not callable(function):
        raise DefinitionError(
            f"{decorator}: {function!r:.100} is not a function; write {decorator} above a `def`"
        )


def function_name(function: Callable[..., Any]) -> str:
    """The name to use in messages to the author, and of a feature that is given no other."""
    target = unwrap_function(function)
    return str(getattr(target, "__name__", None) or type(target).__name__)


def documentation(function: Callable[..., Any]) -> str | None:
    """The docstring; a callable object's is that of its `__call__`, or of its class."""
    target = unwrap_function(function)
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        return type(target).__call__.__doc__ or type(target).__doc__
    return target.__doc__


def unwrap_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` without its layers of `functools.partial` and `staticmethod`."""
    while isinstance(function, (partial, staticmethod)):
        function = function.func if isinstance(function, partial) else function.__func__
    return function


def call_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a call passes: without those that a `functools.partial` has filled.

    Raises DefinitionError for a function that does not say which it has, as some builtins do not.
    """
    filled: set[str] = set()
    layer: Any = function
    while isinstance(layer, (partial, staticmethod)):
        if isinstance(layer, partial):
            filled |= layer.keywords.keys()
        layer = layer.func if isinstance(layer, partial) else layer.__func__
    try:
        found = inspect.signature(function).parameters
    except (ValueError, TypeError):
        name = function_name(function)
        raise DefinitionError(
            f"{name}: Python does not know its parameters; write a function with annotated parameters that "
            f"calls {name}"
        ) from None
    return [parameter for name, parameter in found.items() if name not in filled]


def resolve_type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of `function`, strings evaluated; raises DefinitionError for one that cannot be."""
    target = unwrap_function(function)
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{function_name(function)}: the annotation {error.name!r} does not exist at run time; "
            "define it at module level and import it outside `if TYPE_CHECKING:`"
        ) from None
    except Exception as error:
        raise DefinitionError(
            f"{function_name(function)}: the annotations cannot be evaluated ({type(error).__name__}: "
            f"{error}); write each as a type, such as `str` or `list[int]`"
        ) from None


def type_name(annotation: Any) -> str:
    """An annotation as an author writes it, more or less."""
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    if inspect.isclass(annotation):
        return annotation.__name__
    return _MODULES.sub("", str(annotation))


def _context(annotation: Any, context_types: tuple[type, ...]) -> type | None:
    """The context type that an annotation is."""
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return annotation if inspect.isclass(annotation) and issubclass(annotation, context_types) else None


def _mentioned(annotation: Any, context_types: tuple[type, ...]) -> type | None:
    """A context type somewhere inside an annotation, as in `Context | None`."""
    for part in get_args(annotation):
        if found := _context(part, context_types) or _mentioned(part, context_types):
            return found
    return None


def _is_async(function: Callable[..., Any]) -> bool:
    target = unwrap_function(function)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
        getattr(type(target), "__call__", None)  # noqa: B004 - not "is it callable?" but "how is it?"
    )
