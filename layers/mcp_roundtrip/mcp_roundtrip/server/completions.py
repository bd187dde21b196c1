"""Completion of prompt arguments and resource template variables (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from mcp_roundtrip.arguments.signature import call_parameters
from mcp_roundtrip.arguments.string_arguments import StringArguments
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, UsageError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.resource_uris import find_equivalent
from mcp_roundtrip.server.admission import Reference, authorize, read_reference, unknown_item
from mcp_roundtrip.server.model import Reply, RequestContext

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
        is_sequence = isinstance(self.values, Iterable) and not isinstance(self.values, str)
        values = tuple(self.values) if is_sequence else ()
        if not is_sequence or not all(isinstance(value, str) for value in values):
            kind = type(self.values).__name__
            raise UsageError(f"a completion returned {kind}; return a list of str, or a Completion")
        if self.total is not None and (type(self.total) is not int or self.total < len(values)):
            raise UsageError(
                f"Completion.total is {self.total!r:.100}, with {len(values)} values; pass how many there "
                "are in all, or None"
            )
        force_setattr(self, "values", values)


class Completable(Protocol):
    """A prompt or a resource."""

    @property
    def parameters(self) -> StringArguments: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...


class CompletionMethods(Struct, frozen=True):
    """The handler of `completion/complete`. A completion requires the scopes of its prompt or resource."""

    features: Mapping[Reference, Completable]
    completers: Mapping[tuple[Reference, str], Callable[..., Any]]

    def complete(self, context: RequestContext) -> Reply:
        """Return suggestions. Raises ProtocolError or InsufficientScope."""
        reference = self._registered_reference(read_reference(context.params))
        argument, value = _read_argument(context.params)
        feature = authorize(self.features.get(reference), context, lambda: unknown_item(*reference))
        if argument not in feature.parameters.names:
            raise ProtocolError(INVALID_PARAMS, f"Unknown argument: {argument[:128]}")
        completer, others = self.completers.get((reference, argument)), _read_other_arguments(context.params)
        try:
            if completer is None:
                choices = feature.parameters.choices(argument)
                found = Completion([choice for choice in choices if choice.startswith(value)])
            else:
                found = _suggest(completer, value, others)
        except Exception as error:
            context.ports.observer.record_failure("completion_raised", error, **{reference[0]: reference[1]})
            raise context.internal_error from error
        return Reply(results.complete(context.server_info, completion=_completion_members(found)))

    def _registered_reference(self, reference: Reference) -> Reference:
        """Return the reference in the spelling of its registration."""
        kind, name = reference
        if kind == "prompt" or reference in self.features:
            return reference
        names = (known for of_kind, known in self.features if of_kind == kind)
        return kind, find_equivalent(name, names)


def _suggest(completer: Callable[..., Any], value: str, others: Mapping[str, str]) -> Completion:
    """Return the suggestions of a function. Raises UsageError for values that are not text."""
    takes_others = len(call_parameters(completer)) == 2
    found = completer(value, others) if takes_others else completer(value)
    return found if isinstance(found, Completion) else Completion(found)


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
