"""Completion of prompt arguments and resource template variables (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from mcp_roundtrip.arguments.signature import Signature, call_parameters, function_name, unwrap_function
from mcp_roundtrip.arguments.string_arguments import StringArguments
from mcp_roundtrip.engine.context_base import ContextBase
from mcp_roundtrip.errors import INVALID_PARAMS, DefinitionError, ProtocolError, UsageError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.constants import COMPLETION_COMPLETE
from mcp_roundtrip.protocol.resource_uris import find_equivalent
from mcp_roundtrip.server.admission import Reference, authorize, read_reference, unknown_item
from mcp_roundtrip.server.model import Handler, Reply, RequestContext
from mcp_roundtrip.server.options import ServerOptions

MAX_VALUES: Final = 100
"""Values in one response (schema, CompleteResult)."""


class Completion(Struct, frozen=True):
    """Suggested values, best first: at most 100 are sent. `total` is the number of all matches, if known.

    Raises UsageError for values that are not text.
    """

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise _invalid_suggestions(self.values)
        values = tuple(self.values)
        if not all(isinstance(value, str) for value in values):
            raise _invalid_suggestions(self.values)
        if self.total is not None and (type(self.total) is not int or self.total < len(values)):
            raise UsageError(
                f"Completion.total is {self.total!r:.100}, with {len(values)} values; pass how many there "
                "are in all, or None"
            )
        force_setattr(self, "values", values)


def _invalid_suggestions(value: object) -> UsageError:
    return UsageError(f"a completion returned {type(value).__name__}; return a list of str, or a Completion")


class Completer(Struct, frozen=True):
    """A function that takes the text typed so far and, if it has a second parameter, the other arguments."""

    function: Callable[..., Any]
    takes_arguments: bool

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Completer:
        """Wrap a function. Raises DefinitionError unless it takes one or two parameters and is not async."""
        name, parameters = function_name(function), call_parameters(function)
        if iscoroutinefunction(unwrap_function(function)):
            raise DefinitionError(f"{name}: a completion is not async; write `def`")
        if _takes_context(function):
            raise DefinitionError(
                f"{function_name(function)}: a completion takes no context; remove the parameter"
            )
        if len(parameters) not in (1, 2):
            raise DefinitionError(
                f"{name}: a completion takes the text typed so far and, if it needs them, the "
                f"other arguments; write `def {name}(value: str, arguments: dict[str, str])`"
            )
        return cls(function, len(parameters) == 2)

    def __call__(self, value: str, arguments: Mapping[str, str]) -> Completion:
        """Return the suggestions. Raises UsageError for values that are not text."""
        found = self.function(value, arguments) if self.takes_arguments else self.function(value)
        return found if isinstance(found, Completion) else Completion(found)


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        signature = Signature.from_function(function, (ContextBase,))
    except DefinitionError:  # annotations may exist for type checkers only
        return False
    return signature.context_parameter is not None


class Completable(Protocol):
    """A prompt or a resource."""

    @property
    def parameters(self) -> StringArguments: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...


class CompletionMethods(Struct, frozen=True):
    """The handler of `completion/complete`. A completion requires the scopes of its prompt or resource."""

    options: ServerOptions
    features: Mapping[Reference, Completable]
    completers: Mapping[tuple[Reference, str], Completer]

    def handlers(self) -> dict[str, Handler]:
        """Return the handler of each method."""
        return {COMPLETION_COMPLETE: self._complete}

    def _complete(self, context: RequestContext) -> Reply:
        params = context.params
        reference, (argument, value) = (
            self._registered_reference(read_reference(params)),
            _read_argument(params),
        )
        parameters = self._find_feature(reference, context).parameters
        if argument not in parameters.names:
            raise ProtocolError(INVALID_PARAMS, f"Unknown argument: {argument[:128]}")
        completer, others = self.completers.get((reference, argument)), _read_other_arguments(params)
        try:
            found = (
                Completion([choice for choice in parameters.choices(argument) if choice.startswith(value)])
                if completer is None
                else completer(value, others)
            )
        except Exception as error:
            context.ports.observer.record_failure("completion_raised", error, **{reference[0]: reference[1]})
            raise context.internal_error from error
        server_info = context.server_info(self.options)
        return Reply(results.complete(server_info, completion=_completion_members(found)))

    def _registered_reference(self, reference: Reference) -> Reference:
        """Return the reference in the spelling of its registration."""
        kind, name = reference
        if kind == "prompt" or reference in self.features:
            return reference
        names = (known for of_kind, known in self.features if of_kind == kind)
        return kind, find_equivalent(name, names)

    def _find_feature(self, reference: Reference, context: RequestContext) -> Completable:
        return authorize(
            self.options, self.features.get(reference), context, lambda: unknown_item(*reference)
        )


def _completion_members(found: Completion) -> dict[str, Any]:
    values = list(found.values[:MAX_VALUES])
    left_out = len(found.values) > MAX_VALUES
    total = len(found.values) if found.total is None and not left_out and not found.has_more else found.total
    has_more = left_out or (
        found.has_more if found.has_more is not None else bool(total and total > len(values))
    )
    counted = {} if total is None else {"total": total}
    return {"values": values, **counted, "hasMore": has_more}


def _read_argument(params: Mapping[str, Any]) -> tuple[str, str]:
    match params.get("argument"):
        case {"name": str(name), "value": str(value)}:
            return name, value
    raise ProtocolError(INVALID_PARAMS, "Invalid params: argument must have a name and a value, both strings")


def _read_other_arguments(params: Mapping[str, Any]) -> dict[str, str]:
    match params.get("context", {}):
        case {"arguments": dict(arguments)} if all(isinstance(v, str) for v in arguments.values()):
            return arguments
        case dict(context) if context.get("arguments") is None:
            return {}
    raise ProtocolError(INVALID_PARAMS, "Invalid params: context.arguments must be an object of strings")
