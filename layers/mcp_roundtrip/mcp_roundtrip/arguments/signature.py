"""Signatures of authors' functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from mcp_roundtrip.arguments.docstring import parse_docstring
from mcp_roundtrip.errors import DefinitionError

_UNSUPPORTED_KINDS: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only; remove the `/` from the signature",
    inspect.Parameter.VAR_POSITIONAL: (
        "collects positional arguments; write one parameter that is a list (in a decorator: functools.wraps)"
    ),
    inspect.Parameter.VAR_KEYWORD: "collects keyword arguments; write one parameter for each argument",
}

_INJECTORS = ("fastmcp.", "uncalled_for.", "docket.dependencies.", "mcp.server.", "fastapi.params.Depends")
"""The modules of other frameworks' markers, such as Depends and TokenClaim."""

_MODULE_PREFIX = r"\b(?:\w+\.|<locals>\.)+(?=\w)"
"""The module before the name of a type in the text of an annotation."""


class AnyContext:
    """The base class of `Context` and `AsyncContext`, by which a signature finds its context parameter."""


class Signature(Struct, frozen=True):
    """A function's signature with evaluated annotations. `parameters` does not include the context.

    `prose` is the docstring without its texts on parameters, which are `descriptions`. `replaced_texts` are
    those that the schema lacks, because `Field(description=…)` of the parameter says something else.
    """

    name: str
    parameters: tuple[inspect.Parameter, ...]
    context_parameter: str | None
    is_async: bool
    prose: str
    descriptions: Mapping[str, str]
    replaced_texts: Mapping[str, str]
    context_type: type | None = None

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Signature:
        """Read the signature of `function`. Raises DefinitionError."""
        name = function_name(function)
        if _has_yield(function):
            raise DefinitionError(
                f"{name}: the function has a `yield`; return a list, and report progress with ctx.progress"
            )
        hints = resolve_type_hints(function)
        parameters: list[inspect.Parameter] = []
        contexts: dict[str, type] = {}
        for parameter in call_parameters(function):
            if problem := _UNSUPPORTED_KINDS.get(parameter.kind):
                raise DefinitionError(f"{name}: parameter {parameter.name!r} {problem}")
            annotation = hints.get(parameter.name, parameter.empty)
            if context := _context_type(annotation):
                contexts[parameter.name] = context
            elif found := _context_inside(annotation):
                raise DefinitionError(
                    f"{name}: parameter {parameter.name!r} is annotated with {type_name(annotation)}, and "
                    f"the server always passes a context; write `{parameter.name}: {found.__name__}`"
                )
            elif package := _package_of_other_context(annotation):
                own = "AsyncContext" if _is_async(function) else "Context"
                raise DefinitionError(
                    f"{name}: parameter {parameter.name!r} is annotated with the Context of {package}; write "
                    f"`{parameter.name}: {own}`, and `from mcp_roundtrip import {own}`"
                )
            else:
                if parameter.default is ...:  # to pydantic, this means that there is none
                    parameter = parameter.replace(default=parameter.empty)
                parameters.append(parameter.replace(annotation=annotation))
        if hasattr(function, "__wrapped__"):
            _check_decorator(function, [*contexts, *(each.name for each in parameters)])
        if len(contexts) > 1:
            raise DefinitionError(
                f"{name}: parameters {' and '.join(map(repr, contexts))} are both annotated as the context; "
                "keep one of them"
            )
        prose, texts = parse_docstring(_docstring(function))
        described = [each for each in parameters if each.name in texts] if texts else []
        context_parameter, context_type = next(iter(contexts.items()), (None, None))
        return cls(
            name=name,
            parameters=tuple(parameters),
            context_parameter=context_parameter,
            is_async=_is_async(function),
            prose=prose,
            descriptions={each.name: texts[each.name] for each in described},
            replaced_texts={
                each.name: texts[each.name] for each in described if _is_replaced(each, texts[each.name])
            },
            context_type=context_type,
        )

    def require_annotations(self) -> Signature:
        """Return this signature. Raises DefinitionError for a parameter without an annotation."""
        for parameter in self.parameters:
            if parameter.annotation is parameter.empty:
                raise DefinitionError(
                    f"{self.name}: parameter {parameter.name!r} has no annotation; {self._remedy(parameter)}"
                )
            # Without this, a client would pass what other frameworks inject, such as the id of a user.
            for each in (*getattr(parameter.annotation, "__metadata__", ()), parameter.default):
                marker = type(each)
                if f"{marker.__module__}.{marker.__name__}".startswith(_INJECTORS):
                    raise DefinitionError(
                        f"{self.name}: parameter {parameter.name!r} is not injected by "
                        f"{marker.__name__.strip('_')} here; remove it, and get its value in {self.name}"
                    )
        return self

    def _remedy(self, parameter: inspect.Parameter) -> str:
        if parameter.name in ("self", "cls") and parameter is self.parameters[0]:
            return f"register the method of an instance, such as `server.tool(service.{self.name})`"
        if parameter.name in ("ctx", "context") and self.context_parameter is None:
            return f"write `{parameter.name}: {'AsyncContext' if self.is_async else 'Context'}`"
        return f"write its type, such as `{parameter.name}: str`"


def check_callable(decorator: str, function: Any) -> None:
    """Raise DefinitionError for an object that `decorator` cannot register."""
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
    """Return a function's name, which is also the default name of its feature."""
    target = unwrap_function(function)
    return str(getattr(target, "__name__", None) or type(target).__name__)


def _docstring(function: Callable[..., Any]) -> str:
    """Return the docstring: for a callable object that of its `__call__` or of its class."""
    target, definition = unwrap_function(function), _definition(function)
    return definition.__doc__ or (None if definition is target else type(target).__doc__) or ""


def _is_replaced(parameter: inspect.Parameter, text: str) -> bool:
    given = (*getattr(parameter.annotation, "__metadata__", ()), parameter.default)
    # By name, as pydantic may not be imported yet. A default can have a description of its own.
    own = [item.description for item in given if type(item).__name__ == "FieldInfo"]
    return any(own) and text not in own


def unwrap_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside layers of `functools.partial` and `staticmethod`."""
    while isinstance(function, (partial, staticmethod)):
        function = function.func if isinstance(function, partial) else function.__func__
    return function


def call_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a call, without those of a `functools.partial`. Raises DefinitionError."""
    preset: set[str] = set()
    layer: Any = function
    while isinstance(layer, (partial, staticmethod)):
        if isinstance(layer, partial):
            preset |= layer.keywords.keys()
        layer = layer.func if isinstance(layer, partial) else layer.__func__
    try:
        found = inspect.signature(function).parameters
    except (ValueError, TypeError):
        name = function_name(function)
        raise DefinitionError(
            f"{name}: Python cannot read its parameters; write a function with annotated parameters that "
            f"calls {name}"
        ) from None
    return [parameter for name, parameter in found.items() if name not in preset]


def _check_decorator(function: Callable[..., Any], names: Sequence[str]) -> None:
    """Raise DefinitionError if a decorator's function does not take the parameters by name."""
    try:
        inspect.signature(function, follow_wrapped=False).bind(**dict.fromkeys(names))
    except ValueError:
        pass  # functools.cache has no signature of its own
    except TypeError as error:
        raise DefinitionError(
            f"{function_name(function)}: its decorator does not take the parameters by name ({error}); "
            "write `*args, **kwargs` in the decorator, or remove it"
        ) from None


def _definition(function: Callable[..., Any]) -> Any:
    """Return the object with the annotations and the docstring: the function, or its type's `__call__`."""
    target = unwrap_function(function)
    has_own = inspect.isroutine(target) or inspect.isclass(target) or hasattr(target, "__wrapped__")
    return target if has_own else type(target).__call__


def resolve_type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the evaluated annotations of `function`. Raises DefinitionError."""
    try:
        return get_type_hints(_definition(function), include_extras=True)
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


def unwrap_alias(annotation: Any) -> Any:
    """Return the type that a `type` statement names (PEP 695), with the arguments of a generic alias."""
    while is_alias(annotation):
        value = (get_origin(annotation) or annotation).__value__
        given = dict(zip(getattr(annotation, "__type_params__", ()), get_args(annotation), strict=False))
        free = getattr(value, "__parameters__", ())
        if isinstance(value, TypeVar):
            annotation = given[value]
        else:
            annotation = value[tuple(given[each] for each in free)] if given and free else value
    return annotation


def is_alias(annotation: Any) -> bool:
    """Return whether a `type` statement defines the annotation or its generic type."""
    # typing's TypeAliasType, or that of typing_extensions
    return type(get_origin(annotation) or annotation).__name__ == "TypeAliasType"


def type_name(annotation: Any) -> str:
    """Return an annotation as text, without modules."""
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    if inspect.isclass(annotation):
        return annotation.__name__
    return re.sub(_MODULE_PREFIX, "", str(annotation))


def _context_type(annotation: Any) -> type | None:
    with suppress(NameError):  # the types of a `type` statement may be defined later
        annotation = unwrap_alias(annotation)
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return annotation if inspect.isclass(annotation) and issubclass(annotation, AnyContext) else None


def _context_inside(annotation: Any) -> type | None:
    """Return a context type inside an annotation, such as `Context | None`, or None."""
    for part in get_args(annotation):
        if found := _context_type(part) or _context_inside(part):
            return found
    return None


def _package_of_other_context(annotation: Any) -> str | None:
    """Return the package, `mcp` or `fastmcp`, whose context an annotation names, or None."""
    for part in (annotation, *get_args(annotation)):
        for base in getattr(part, "__mro__", ()):
            package: str = base.__module__.partition(".")[0]
            if base.__name__ == "Context" and package in ("fastmcp", "mcp"):
                return package
    return None


def _is_async(function: Callable[..., Any]) -> bool:
    target = unwrap_function(function)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def _has_yield(function: Callable[..., Any]) -> bool:
    code = getattr(_definition(function), "__code__", None)
    # The functions of `inspect` would be a tenth of the time of a registration.
    return code is not None and bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR))
