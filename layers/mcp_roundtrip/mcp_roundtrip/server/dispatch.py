"""From an HTTP request to an HTTP response, pure given its ports.

The rungs before a method's own handler, in this order: Origin (403), POST (405), principal (401), size
(413), then the ladder of `protocol.meta`, then the method (404). Each handler adds the rungs that need to
know what it serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcp_roundtrip.auth import Unauthorized
from mcp_roundtrip.canonical import compact
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, ResultTooLarge, SettingsError
from mcp_roundtrip.http import EVENT_STREAM_HEADERS, JSON_HEADERS, HttpRequest, HttpResponse
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.protocol import jsonrpc, results
from mcp_roundtrip.protocol.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Notification, RequestId
from mcp_roundtrip.protocol.meta import Rejection, Route, classify, unknown_method
from mcp_roundtrip.protocol.methods import (
    DISCOVER,
    META_SERVER_INFO,
    TASKS_EXTENSION,
    TOOLS_CALL,
    TOOLS_LIST,
)
from mcp_roundtrip.server.calls import Call, Inputs, Reply, internal_error
from mcp_roundtrip.server.forwarded import definition_digest
from mcp_roundtrip.server.ports import Invocation, Observer, Ports
from mcp_roundtrip.server.registry import Tool

MAX_BODY: Final = 4 * 1024 * 1024
"""Bytes of a request body; larger ones are refused with 413, as the official SDKs' servers do."""

MAX_RESPONSE: Final = 6_000_000
"""Bytes of a response's body: Lambda takes 6 MiB, with the headers and what else is in it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that passed the ladder, with all a handler may look at."""

    route: Route
    principal: Principal | None
    ports: Ports
    invocation: Invocation


Handler = Callable[[Exchange], Reply | HttpResponse]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An MCP endpoint: a handler for each method, and for each of the `initialize` era if that is served."""

    handlers: Mapping[str, Handler]
    legacy_handlers: Mapping[str, Handler] = field(default_factory=dict)

    def respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        """Answer one request. Raises nothing: a fault of this library becomes -32603."""
        request_id: RequestId | None = None
        is_legacy = False
        try:
            principal, body = _admit(request, ports)
            routed = classify(request.headers, body, serves_legacy=bool(self.legacy_handlers))
            if isinstance(routed, Notification):
                return HttpResponse(202)
            request_id, is_legacy = routed.id, routed.is_legacy
            if isinstance(routed, Rejection):
                raise routed.failure
            return self._handle(Exchange(routed, principal, ports, invocation), request.headers)
        except Unauthorized as refused:
            ports.observer.record("unauthorized", reason=refused.reason)
            failure = ProtocolError(INVALID_REQUEST, "Unauthorized", http_status=401)
            return _failure(None, failure, ports, {"www-authenticate": "Bearer"})
        except ProtocolError as failure:
            # Clients of the time of `initialize` do not read the body of a 4xx.
            return _failure(request_id, failure, ports, status=200 if is_legacy else None)
        except Exception as error:
            record_fault(ports.observer, error)
            return _failure(request_id, internal_error(invocation.correlation_id), ports)

    def _handle(self, exchange: Exchange, headers: Mapping[str, str]) -> HttpResponse:
        route = exchange.route
        handler = (self.legacy_handlers if route.is_legacy else self.handlers).get(route.method)
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
        return _success(exchange.route.id, Reply(results.tool_error(server_info, str(error))), {})


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
    if _size(request.body) > MAX_BODY:
        raise ProtocolError(INVALID_REQUEST, f"The body is larger than {MAX_BODY} bytes", http_status=413)
    return principal, request.body


def payload_size(body: str) -> int:
    """Bytes of the body as it stands in a Lambda response: ASCII, as a JSON string."""
    return len(body) + body.count('"') + body.count("\\") + body.count("\n")


def _size(body: str | bytes) -> int:
    """Bytes; text is encoded only where its characters leave the question open."""
    if isinstance(body, str) and MAX_BODY // 4 < len(body) <= MAX_BODY:
        return len(body.encode("utf-8", "surrogatepass"))
    return len(body)


def _failure(
    request_id: RequestId | None,
    failure: ProtocolError,
    ports: Ports,
    headers: Mapping[str, str] | None = None,
    status: int | None = None,
) -> HttpResponse:
    status = status or jsonrpc.http_status(failure)
    ports.observer.record("refused", code=failure.code, status=status)
    allow = {"allow": "POST"} if status == 405 else {}
    answer = error_response(request_id, failure)
    return replace(answer, status=status, headers={**answer.headers, **allow, **(headers or {})})


def error_response(request_id: RequestId | None, failure: ProtocolError) -> HttpResponse:
    """A JSON-RPC error with the HTTP status it travels with."""
    body = compact(jsonrpc.error(request_id, failure))
    return HttpResponse(jsonrpc.http_status(failure), body, JSON_HEADERS)


def record_fault(observer: Observer, error: Exception) -> None:
    """Say that a setting is wrong, or this library."""
    observer.failure("misconfigured" if isinstance(error, SettingsError) else "internal_error", error)


def _success(request_id: RequestId, reply: Reply, headers: Mapping[str, str]) -> HttpResponse:
    response = compact(jsonrpc.result(request_id, reply.result))
    if not reply.notifications or "text/event-stream" not in headers.get("accept", ""):
        return HttpResponse(200, response, JSON_HEADERS)
    events = [*map(compact, reply.notifications), response]
    return HttpResponse(200, "".join(f"data: {event}\n\n" for event in events), EVENT_STREAM_HEADERS)


# -- the methods of a server with tools -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolServer:
    """Discovery, `tools/list` and `tools/call` over a set of tools."""

    server_info: Mapping[str, Any]
    instructions: str | None
    tools: Mapping[str, Tool]
    namespaced_requests: bool = False
    digests: dict[str, str] = field(default_factory=dict)

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {
            DISCOVER: self._discover,
            TOOLS_LIST: self._list,
            TOOLS_CALL: lambda exchange: self.call(exchange).answer(),
        }

    def _discover(self, exchange: Exchange) -> Reply:
        return Reply(results.discover(self.server_info, capabilities(self.has_tasks), self.instructions))

    @property
    def has_tasks(self) -> bool:
        """Whether a call of any tool can become a task."""
        return any(tool.task for tool in self.tools.values())

    def _list(self, exchange: Exchange) -> Reply:
        definitions = [tool.definition() for tool in self.tools.values()]
        return list_tools(self.server_info, definitions, exchange)

    def call(self, exchange: Exchange) -> Call:
        """The call that a `tools/call` asks for. Raises ProtocolError."""
        inputs = Inputs.read(exchange.route.params)
        tool = self.tools[known_name(exchange.route, self.tools)]
        self._compare_with_catalog(tool, exchange)
        return Call(
            tool,
            tool.name,
            inputs,
            exchange.route,
            exchange.principal,
            exchange.ports,
            exchange.invocation,
            exchange.invocation.forwarded.server_info or self.server_info,
            self.namespaced_requests,
        )

    def _compare_with_catalog(self, tool: Tool, exchange: Exchange) -> None:
        """Say so when the front door lists another definition than this function has: one of them is old."""
        listed = exchange.invocation.forwarded.definition
        if listed is not None and listed != self._digest(tool):
            exchange.ports.observer.record("catalog_drift", tool=tool.name)

    def _digest(self, tool: Tool) -> str:
        if tool.name not in self.digests:  # the JSON Schemas behind it cost milliseconds
            self.digests[tool.name] = definition_digest(tool.definition())
        return self.digests[tool.name]


def capabilities(has_tasks: bool) -> dict[str, Any]:
    """ServerCapabilities. `logging`, because any tool may emit log messages when asked for them."""
    always: dict[str, Any] = {"tools": {}, "logging": {}}
    return {**always, "extensions": {TASKS_EXTENSION: {}}} if has_tasks else always


def known_name(route: Route, names: Iterable[str]) -> str:
    """`params.name`, if it is one of `names`. Raises -32602."""
    name = route.params.get("name")
    if not isinstance(name, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: name must be a string")
    if name not in names:
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name[:128]}")
    return name


def list_tools(
    server_info: Mapping[str, Any], definitions: Sequence[Mapping[str, Any]], exchange: Exchange
) -> Reply:
    """ListToolsResult: one page, so any cursor is one this server never gave out."""
    if exchange.route.params.get("cursor") is not None:
        raise ProtocolError(INVALID_PARAMS, "Invalid params: unknown cursor")
    return Reply(results.cacheable(server_info, tools=definitions))
