"""From an HTTP request to an HTTP response, pure given its ports.

The rungs before a method's own handler, in this order: Origin (403), POST (405), principal (401), size
(413), then the ladder of `protocol.meta`, then the method (404). Each handler adds the rungs that need to
know what it serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_roundtrip.auth import Unauthorized
from mcp_roundtrip.canonical import compact
from mcp_roundtrip.errors import INVALID_PARAMS, DefinitionError, ProtocolError, ResultTooLarge, SettingsError
from mcp_roundtrip.http import (
    JSON_HEADERS,
    MAX_BODY,
    MAX_RESPONSE,
    HttpRequest,
    HttpResponse,
    answered,
    fits,
    payload_size,
)
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.protocol import jsonrpc, results
from mcp_roundtrip.protocol.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Notification, RequestId
from mcp_roundtrip.protocol.meta import Rejection, Route, classify, unknown_method
from mcp_roundtrip.protocol.methods import (
    DISCOVER,
    META_SERVER_INFO,
    SUBSCRIPTIONS_LISTEN,
    TASKS_EXTENSION,
    TOOLS_CALL,
    TOOLS_LIST,
)
from mcp_roundtrip.server.calls import Call, Inputs, Reply, internal_error
from mcp_roundtrip.server.forwarded import definition_digest
from mcp_roundtrip.server.ports import Invocation, Observer, Ports
from mcp_roundtrip.server.registry import Tool

if TYPE_CHECKING:
    from mcp_roundtrip.server.feature import Feature

PAGE_SIZE: Final = 1_000
"""Items of a list that are sent at once."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that passed the ladder, with all a handler may look at."""

    route: Route
    principal: Principal | None
    ports: Ports
    invocation: Invocation
    headers: Mapping[str, str] | None = None
    """None where there was no HTTP."""
    call: Callable[..., Call] = Call
    """What carries out a call: clients of the `initialize` era have another one."""


Handler = Callable[[Exchange], Reply | HttpResponse]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An MCP endpoint: a handler for each method.

    `legacy_handlers` gives those of the `initialize` era, if that is served: at its first request.
    """

    handlers: Mapping[str, Handler]
    legacy_handlers: Callable[[], Mapping[str, Handler]] | None = None

    def respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        """Answer one request. Raises nothing: a fault of this library becomes -32603."""
        request_id: RequestId | None = None
        is_legacy = False
        try:
            principal, body = _admit(request, ports)
            routed = classify(request.headers, body, serves_legacy=self.legacy_handlers is not None)
            if isinstance(routed, Notification):
                return HttpResponse(202)
            request_id, is_legacy = routed.id, routed.is_legacy
            if isinstance(routed, Rejection):
                raise routed.failure
            if routed.meta.trace:
                _tag_trace(routed, ports.observer)
            headers = None if request.is_direct else request.headers
            return self._handle(Exchange(routed, principal, ports, invocation, headers), request.headers)
        except Unauthorized as refused:
            ports.observer.record("unauthorized", reason=refused.reason)
            failure = ProtocolError(INVALID_REQUEST, "Unauthorized", http_status=401)
            return _failure(None, failure, ports)
        except ProtocolError as failure:
            # Clients of the time of `initialize` do not read the body of a 4xx.
            return _failure(request_id, failure, ports, request.headers, 200 if is_legacy else None)
        except Exception as error:
            record_fault(ports.observer, error)
            return _failure(request_id, internal_error(invocation.correlation_id), ports)

    def _handle(self, exchange: Exchange, headers: Mapping[str, str]) -> HttpResponse:
        route = exchange.route
        legacy = self.legacy_handlers if route.is_legacy else None
        handler = (self.handlers if legacy is None else legacy()).get(route.method)
        if handler is None:
            raise unknown_method(route.method)
        reply = handler(exchange)
        if isinstance(reply, HttpResponse):
            return reply
        answer = _success(route.id, reply, headers)
        if payload_size(answer.body) > MAX_RESPONSE:
            return self._too_large(exchange, reply)
        exchange.ports.observer.record("answered", method=route.method, **reply.fields)
        return answer

    def _too_large(self, exchange: Exchange, reply: Reply) -> HttpResponse:
        """Lambda would fail the invocation, and nobody would learn why."""
        error = ResultTooLarge(MAX_RESPONSE)
        exchange.ports.observer.failure("result_too_large", error, **reply.fields)
        if exchange.route.method != TOOLS_CALL:
            raise internal_error(exchange.invocation.correlation_id)
        server_info = reply.result["_meta"][META_SERVER_INFO]
        told = results.tool_error(server_info, str(error))
        if exchange.route.is_legacy:
            del told["resultType"]
        return _success(exchange.route.id, Reply(told), {})


def _tag_trace(route: Route, observer: Observer) -> None:
    from mcp_roundtrip.protocol.trace import TraceContext  # most requests have none

    trace = TraceContext.read(route.meta.trace)
    observer.tag(**trace.told())


def _admit(request: HttpRequest, ports: Ports) -> tuple[Principal | None, str | bytes]:
    """The rungs before the body is looked at, and the body. Raises Unauthorized or ProtocolError."""
    origin = request.headers.get("origin")
    if origin is not None and origin not in ports.policy.allowed_origins:
        raise ProtocolError(INVALID_REQUEST, "This Origin is not allowed", http_status=403)
    if request.method != "POST":
        raise ProtocolError(INVALID_REQUEST, "The MCP endpoint accepts POST alone", http_status=405)
    principal = ports.policy.authenticator.principal(request.authorizer)
    if request.body is None:
        raise ProtocolError(
            PARSE_ERROR, "Parse error: the body is not JSON, or not the Base64 it is said to be"
        )
    if not fits(request.body):
        raise ProtocolError(INVALID_REQUEST, f"The body is larger than {MAX_BODY} bytes", http_status=413)
    return principal, request.body


def _failure(
    request_id: RequestId | None,
    failure: ProtocolError,
    ports: Ports,
    headers: Mapping[str, str] = MappingProxyType({}),
    status: int | None = None,
) -> HttpResponse:
    status = status or jsonrpc.http_status(failure)
    ports.observer.record("refused", code=failure.code, status=status, **failure.fields)
    if status == 200:
        message = compact(jsonrpc.error(request_id, failure))
        answer = answered(message, map(compact, failure.notifications), headers)
        if payload_size(answer.body) <= MAX_RESPONSE:
            return answer
    answer = error_response(request_id, failure)
    return replace(answer, status=status, headers={**answer.headers, **_TELLING.get(status, {})})


_TELLING: Final = {401: {"www-authenticate": "Bearer"}, 405: {"allow": "POST"}}
"""Headers that a status has to have."""


def error_response(request_id: RequestId | None, failure: ProtocolError) -> HttpResponse:
    """A JSON-RPC error with the HTTP status it travels with."""
    body = compact(jsonrpc.error(request_id, failure))
    return HttpResponse(jsonrpc.http_status(failure), body, JSON_HEADERS)


def record_fault(observer: Observer, error: Exception) -> None:
    """Say that a setting is wrong, or this library."""
    observer.failure("misconfigured" if isinstance(error, SettingsError) else "internal_error", error)


def _success(request_id: RequestId, reply: Reply, headers: Mapping[str, str]) -> HttpResponse:
    return answered(_written(request_id, reply.result), map(compact, reply.notifications), headers)


def _written(request_id: RequestId, result: Mapping[str, Any]) -> str:
    if isinstance(result, results.Kept):
        return f'{{"jsonrpc":"2.0","id":{compact(request_id)},"result":{result.json}}}'
    return compact(jsonrpc.result(request_id, result))


# -- what the methods of all features have in common ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself. Lists come in pages of `page_size`, and are fresh for `list_ttl_ms`."""

    server_info: Mapping[str, Any]
    instructions: str | None = None
    namespaced_requests: bool = False
    page_size: int = PAGE_SIZE
    list_ttl_ms: int = results.LIST_TTL_MS
    digests: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("page_size", 1), ("list_ttl_ms", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise DefinitionError(f"{name}={value!r}: it is a whole number of at least {least}")

    def digest(self, feature: Feature) -> str:
        """What tells the feature's definition from another one."""
        key = (feature.kind, feature.name)
        if key not in self.digests:  # the JSON Schemas behind it cost milliseconds
            self.digests[key] = definition_digest(feature.definition())
        return self.digests[key]


def call_of(facts: ServerFacts, exchange: Exchange, feature: Feature, name: str, inputs: Inputs) -> Call:
    """The call of a feature that a request asks for by this name."""
    return exchange.call(
        feature,
        name,
        inputs,
        exchange.route,
        exchange.principal,
        exchange.ports,
        exchange.invocation,
        facts,
    )


def known_name(route: Route, names: Iterable[str], kind: str = "tool") -> str:
    """`params.name`, if it is one of `names`. Raises -32602."""
    name = route.params.get("name")
    if not isinstance(name, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: name must be a string")
    if name not in names:
        raise ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:128]}")
    return name


class Definable(Protocol):
    """What stands in a list."""

    def definition(self) -> Mapping[str, Any]: ...


def listed(facts: ServerFacts, member: str, items: Mapping[str, Definable], exchange: Exchange) -> Reply:
    """A page of the list that the result's `member` is; `items` are by the names that order them."""
    cursor, names = exchange.route.params.get("cursor"), list(items)
    following: dict[str, str] = {}
    if cursor is not None or len(names) > facts.page_size:
        from mcp_roundtrip.server.pages import page  # most lists are one page

        part, next_cursor = page(member, names, cursor, facts.page_size)
        names = names[part]
        following = {} if next_cursor is None else {"nextCursor": next_cursor}
    definitions = [items[name].definition() for name in names]
    return Reply(
        results.cacheable(facts.server_info, facts.list_ttl_ms, **{member: definitions}, **following)
    )


# -- the methods of a server with tools -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolServer:
    """`tools/list` and `tools/call` over a set of tools."""

    facts: ServerFacts
    tools: Mapping[str, Tool]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {TOOLS_LIST: self._list, TOOLS_CALL: lambda exchange: self.call(exchange).answer()}

    @property
    def has_tasks(self) -> bool:
        """Whether a call of any tool can become a task."""
        return any(tool.task for tool in self.tools.values())

    def _list(self, exchange: Exchange) -> Reply:
        return listed(self.facts, "tools", self.tools, exchange)

    def call(self, exchange: Exchange) -> Call:
        """The call that a `tools/call` asks for. Raises ProtocolError."""
        inputs = Inputs.read(exchange.route.params)
        tool = self.tools[known_name(exchange.route, self.tools)]
        if tool.parameters.mirrored and exchange.headers is not None:
            from mcp_roundtrip.protocol.parameter_headers import check_parameters  # few tools mirror any

            mirrored, headers = tool.parameters.mirrored, exchange.headers
            check_parameters(mirrored, inputs.arguments, headers, required=not exchange.route.is_legacy)
        return call_of(self.facts, exchange, tool, tool.name, inputs)


def discovery(facts: ServerFacts, capabilities: Mapping[str, Any]) -> dict[str, Handler]:
    """The handlers of what every server answers: `server/discover`, and `subscriptions/listen`."""
    result = results.discover(facts.server_info, capabilities, facts.instructions, facts.list_ttl_ms)

    def listen(exchange: Exchange) -> Reply | HttpResponse:
        from mcp_roundtrip.server.subscriptions import Subscriptions  # most clients never do

        return Subscriptions(facts.server_info).handlers()[SUBSCRIPTIONS_LISTEN](exchange)

    return {DISCOVER: lambda exchange: Reply(result), SUBSCRIPTIONS_LISTEN: listen}


def capabilities(*features: str, has_tasks: bool = False) -> dict[str, Any]:
    """ServerCapabilities. `logging`, because any feature may emit log messages when asked for them."""
    always: dict[str, Any] = {**{feature: {} for feature in features}, "logging": {}}
    return {**always, "extensions": {TASKS_EXTENSION: {}}} if has_tasks else always
