"""What the methods of all features have in common: the request at hand, and which features its caller has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from mcp_roundtrip.auth.callers import InsufficientScope
from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.errors import INVALID_PARAMS, DefinitionError, ProtocolError, ToolError
from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import ValidRequest
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.invocation import DRIFT_REMEDY, Invocation, definition_digest
from mcp_roundtrip.server.round import Call, Reply

if TYPE_CHECKING:
    from mcp_roundtrip.auth.scopes import ScopeHierarchy
    from mcp_roundtrip.server.feature import Feature

PAGE_SIZE: Final = 1_000
"""Items of a list that are sent at once."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request that passed the ladder, with all a handler may look at."""

    route: ValidRequest
    principal: Principal | None
    ports: Ports
    invocation: Invocation
    headers: Mapping[str, str] | None = None
    """None where there was no HTTP."""
    call: Callable[..., Call] = Call
    """What carries out a call: clients of the `initialize` era have another one."""
    scopes: frozenset[str] = frozenset()
    """What the principal was granted."""


Handler = Callable[[RequestContext], Reply | HttpResponse]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What a server says of itself. Lists come in pages of `page_size`, and are fresh for `list_ttl_ms`.

    `hierarchy` says which scopes imply others; with `hide_unauthorized`, what a caller may not call is not
    there for it.
    """

    server_info: Mapping[str, Any]
    instructions: str | None = None
    namespaced_requests: bool = False
    page_size: int = PAGE_SIZE
    list_ttl_ms: int = results.LIST_TTL_MS
    hierarchy: ScopeHierarchy | None = None
    hide_unauthorized: bool = False
    digests: dict[tuple[str, str], str] = field(default_factory=dict)
    undescribed: set[tuple[str, str]] = field(default_factory=set)
    """What the log has said of features that no list can describe: their lists and names."""

    def __post_init__(self) -> None:
        for name, least in (("page_size", 1), ("list_ttl_ms", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise DefinitionError(
                    f"{name}={value!r:.100} is not possible; use a whole number from {least}"
                )

    def info_for(self, invocation: Invocation) -> Mapping[str, Any]:
        """The server's name, to its clients: that of the front door, if one forwarded the request."""
        return invocation.forwarded.server_info or self.server_info

    def permits(self, scopes: Sequence[str], context: RequestContext) -> bool:
        """Whether the caller was granted all of these scopes, or broader ones."""
        if not scopes or self.hierarchy is None:
            return context.scopes.issuperset(scopes)
        return self.hierarchy.satisfies(context.scopes, scopes)

    def hides(self, context: RequestContext) -> bool:
        """Whether what the caller may not call is not there for it: also where its front door says so."""
        return self.hide_unauthorized or context.invocation.forwarded.hides

    def digest(self, feature: Feature) -> str:
        """What tells the feature's definition from another one."""
        key = (feature.kind, feature.name)
        if key not in self.digests:  # the JSON Schemas behind it cost milliseconds
            self.digests[key] = definition_digest(feature.definition())
        return self.digests[key]


def call_of(
    options: ServerOptions, context: RequestContext, feature: Feature, name: str, call_params: CallParams
) -> Call:
    """The call of a feature that a request asks for by this name."""
    return context.call(
        feature,
        name,
        call_params,
        context.route,
        context.principal,
        context.ports,
        context.invocation,
        options,
    )


def carried_out(error: ToolError, data: Mapping[str, Any] | None = None) -> ProtocolError:
    """The JSON-RPC error of a feature that ran and whose results cannot say that it failed.

    Its HTTP status is 200, as a tool's is, because its notifications precede it.
    """
    if error.is_internal:
        return ProtocolError(INTERNAL_ERROR, str(error), http_status=200)
    return ProtocolError(INVALID_PARAMS, str(error), data, http_status=200)


class Guarded(Protocol):
    """What may need scopes."""

    @property
    def scopes(self) -> tuple[str, ...]: ...


AnyGuarded = TypeVar("AnyGuarded", bound=Guarded)


def authorize(
    options: ServerOptions,
    item: AnyGuarded | None,
    context: RequestContext,
    unknown: ProtocolError,
    scopes: Sequence[str] | None = None,
) -> AnyGuarded:
    """The item. Raises `unknown` where there is none that the caller may know of, and InsufficientScope.

    `scopes` are needed instead of the item's own if other items stand for the same request.
    To be called with what the request means. To look among what the caller may call alone would let it have
    a feature that is meant for something else.
    """
    if item is None:
        if context.invocation.forwarded.definition is not None:  # the front door lists it
            method = context.route.method
            context.ports.observer.record("catalog_drift", method=method, remedy=DRIFT_REMEDY)
        raise unknown
    needed = item.scopes if scopes is None else scopes
    if not options.permits(needed, context):
        raise unknown if options.hides(context) else InsufficientScope(needed)
    return item


def named(
    options: ServerOptions, items: Mapping[str, AnyGuarded], context: RequestContext, kind: str = "tool"
) -> AnyGuarded:
    """The item that `params.name` names. Raises -32602 for an unknown one, and InsufficientScope."""
    name = context.route.params.get("name")
    if not isinstance(name, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: name must be a string")
    unknown = ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:128]}")
    return authorize(options, items.get(name), context, unknown)


class Definable(Guarded, Protocol):
    """What stands in a list."""

    def definition(self) -> Mapping[str, Any]: ...


def listed(
    options: ServerOptions, member: str, items: Mapping[str, Definable], context: RequestContext
) -> Reply:
    """A page of the list that the result's `member` is; `items` are by the names that order them."""
    cursor, names = context.route.params.get("cursor"), list(items)
    if options.hides(context):
        names = [name for name in names if options.permits(items[name].scopes, context)]
    following: dict[str, str] = {}
    if cursor is not None or len(names) > options.page_size:
        from mcp_roundtrip.server.pages import page  # most lists are one page

        part, next_cursor = page(member, names, cursor, options.page_size)
        names = names[part]
        following = {} if next_cursor is None else {"nextCursor": next_cursor}
    definitions = list(_definitions(options, member, {name: items[name] for name in names}, context))
    result = results.cacheable(options.server_info, options.list_ttl_ms, **{member: definitions}, **following)
    return Reply({**result, "cacheScope": "private"} if options.hides(context) else result)


def _definitions(
    options: ServerOptions, member: str, items: Mapping[str, Definable], context: RequestContext
) -> Iterator[Mapping[str, Any]]:
    """The definitions of all that can be described; of the others the log speaks once."""
    for name, item in items.items():
        try:
            yield item.definition()
        except Exception as error:  # an annotation of the author's may raise anything
            if (member, name) not in options.undescribed:
                options.undescribed.add((member, name))
                kind = "resource" if member == "resourceTemplates" else member.removesuffix("s")
                context.ports.observer.failure("definition_failed", error, **{kind: name})


def kept(options: ServerOptions, answer: Callable[[RequestContext], Reply]) -> Handler:
    """A list of what stays the same until the next deployment: the JSON of its pages is written once.

    Not where callers are shown different things.
    """
    pages: dict[tuple[str, str], Reply] = {}

    def handled(context: RequestContext) -> Reply:
        if options.hides(context):
            return answer(context)
        page = context.route.meta.protocol_version, compact_json(context.route.params.get("cursor"))
        if page not in pages:
            result = answer(context).result  # raises for a cursor of no page
            pages[page] = Reply(results.PreSerialized(result))
        return pages[page]

    return handled
