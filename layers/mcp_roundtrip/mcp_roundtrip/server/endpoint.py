"""From an HTTP request to an HTTP response, pure given its ports.

The rungs before a method's own handler, in this order: Origin (403), POST (405), principal (401), content
coding (415), size (413), then those of `protocol.request_validation`, then the method (404). Each handler
adds the rungs that need to know what it serves. The protected resource metadata comes before all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.auth.callers import Caller, InsufficientScope, IssuerUnavailable, Unauthorized
from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.errors import DefinitionError, ProtocolError
from mcp_roundtrip.http import (
    JSON_HEADERS,
    HttpRequest,
    HttpResponse,
    body_within_limit,
    build_response,
    event_size,
    payload_size,
)
from mcp_roundtrip.internal_errors import ResultTooLarge, SettingsError
from mcp_roundtrip.ports import Observer, Ports
from mcp_roundtrip.protocol import jsonrpc, results
from mcp_roundtrip.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Notification,
    RequestId,
    TooLarge,
)
from mcp_roundtrip.protocol.methods import (
    DISCOVER,
    META_SERVER_INFO,
    SUBSCRIPTIONS_LISTEN,
    TASKS_EXTENSION,
    TOOLS_CALL,
)
from mcp_roundtrip.protocol.request_validation import (
    InvalidRequest,
    ValidRequest,
    unknown_method,
    validate_request,
)
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.model import Handler, RequestContext, ServerOptions
from mcp_roundtrip.server.round import Reply, internal_error

if TYPE_CHECKING:
    from mcp_roundtrip.auth.protected_resource import ProtectedResource


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An MCP endpoint: a handler for each method.

    `legacy_handlers` gives those of the `initialize` era, if that is served: at its first request. `name` and
    `scopes` are for the protected resource metadata.
    """

    handlers: Mapping[str, Handler]
    legacy_handlers: Callable[[], Mapping[str, Handler]] | None = None
    name: str | None = None
    scopes: Sequence[str] = ()

    def respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        """Answer one request. Raises nothing: a fault of this library becomes -32603."""
        request_id: RequestId | None = None
        is_legacy = False
        try:
            if request.method != "POST" and (page := self._well_known(request, ports)) is not None:
                return page
            caller, body = _admit(request, ports)
            routed = validate_request(
                request.headers,
                body,
                serves_legacy=self.legacy_handlers is not None,
                max_values=ports.config.max_json_values,
            )
            if isinstance(routed, Notification):
                ports.observer.record("request_completed", outcome="notification")
                return HttpResponse(202)
            request_id, is_legacy = routed.id, routed.is_legacy
            if isinstance(routed, InvalidRequest):
                raise routed.failure
            params = routed.params
            ports.observer.redact(lambda: (params, caller.principal and caller.principal.subject))
            if routed.meta.trace:
                _tag_trace(routed, ports.observer)
            context = RequestContext(
                routed,
                caller.principal,
                ports,
                invocation,
                None if request.is_direct else request.headers,
                scopes=caller.scopes,
            )
            return self._handle(context, request)
        except (Unauthorized, InsufficientScope) as refused:
            return self._refused(request_id, refused, ports)
        except ProtocolError as failure:
            # Clients of the time of `initialize` do not read the body of a 4xx.
            return _failure(request_id, failure, ports, request, 200 if is_legacy else None)
        except IssuerUnavailable as error:
            # The request has not been read, so its id is unknown. The failed refresh is in the log already.
            text = f"Tokens cannot be verified at the moment (correlation id {invocation.correlation_id})"
            unavailable = ProtocolError(INTERNAL_ERROR, text, http_status=503)
            unavailable.fields = {"reason": error.reason}
            return _failure(None, unavailable, ports)
        except Exception as error:
            record_fault(ports.observer, error)
            return _failure(request_id, internal_error(invocation.correlation_id), ports)

    def _well_known(self, request: HttpRequest, ports: Ports) -> HttpResponse | None:
        metadata = self._metadata(ports)
        if metadata is None or request.path not in metadata.paths:
            return None
        from mcp_roundtrip.server.resource_metadata import page  # a client asks once an hour

        answer = page(request.method, metadata)
        if answer is not None:
            ports.observer.record("request_completed", outcome="metadata")
        return answer

    def _metadata(self, ports: Ports) -> ProtectedResource | None:
        """None where no authorization server is known."""
        if ports.config.authorization_server is None:
            return None
        from mcp_roundtrip.auth.protected_resource import ProtectedResource  # most requests have all it takes

        servers = (ports.config.authorization_server,)
        return ProtectedResource(ports.config.audience(), servers, self.scopes, self.name)

    def _refused(
        self, request_id: RequestId | None, refused: Unauthorized | InsufficientScope, ports: Ports
    ) -> HttpResponse:
        """401 or 403, and how to do better (basic/authorization "Error Handling")."""
        error: str | None
        if isinstance(refused, InsufficientScope):
            ports.observer.record("insufficient_scope", scopes=list(refused.scopes))
            text, status, error, scopes = "Insufficient scope", 403, "insufficient_scope", refused.scopes
        else:
            ports.observer.record("unauthorized", reason=refused.reason)
            text, status, error, scopes = "Unauthorized", refused.http_status, refused.error, self.scopes
        failure = ProtocolError(INVALID_REQUEST, text, http_status=status)
        answer, metadata = _failure(request_id, failure, ports), self._metadata(ports)
        if metadata is None:
            return answer
        challenge = {"www-authenticate": metadata.challenge(error, scopes)}
        return replace(answer, headers={**answer.headers, **challenge})

    def _handle(self, context: RequestContext, request: HttpRequest) -> HttpResponse:
        route = context.route
        legacy = self.legacy_handlers if route.is_legacy else None
        handler = (self.handlers if legacy is None else legacy()).get(route.method)
        if handler is None:
            raise unknown_method(route.method)
        reply = handler(context)
        if isinstance(reply, HttpResponse):
            return reply
        answer, fields = _within_limit(_written(route.id, reply.result), reply, request)
        if answer is None:
            answer = self._too_large(context, reply, request.max_response_bytes)
            fields = {**fields, "outcome": "result_too_large"}
        context.ports.observer.record("request_completed", method=route.method, **fields)
        return answer

    def _too_large(self, context: RequestContext, reply: Reply, limit: int) -> HttpResponse:
        """Lambda, or a load balancer, would fail the invocation, and nobody would learn why."""
        error = ResultTooLarge(limit)
        context.ports.observer.failure("result_too_large", error, **reply.fields)
        if context.route.method != TOOLS_CALL:
            raise ProtocolError(INTERNAL_ERROR, str(error))
        server_info = reply.result["_meta"][META_SERVER_INFO]
        told = results.tool_error(server_info, str(error))
        if context.route.is_legacy:
            del told["resultType"]
        return HttpResponse(200, _written(context.route.id, told), JSON_HEADERS)


def _tag_trace(route: ValidRequest, observer: Observer) -> None:
    from mcp_roundtrip.protocol.trace import TraceContext  # most requests have none

    trace = TraceContext.read(route.meta.trace)
    observer.tag(**trace.log_fields())


def _admit(request: HttpRequest, ports: Ports) -> tuple[Caller, str | bytes]:
    """The rungs before the body is looked at, and the body.

    Raises Unauthorized, IssuerUnavailable or ProtocolError.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin not in ports.config.allowed_origins:
        raise ProtocolError(INVALID_REQUEST, "This Origin is not allowed", http_status=403)
    if request.method != "POST":
        raise ProtocolError(INVALID_REQUEST, "The MCP endpoint accepts POST alone", http_status=405)
    caller = ports.config.authenticator.caller(request.headers, request.authorizer)
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        text = "The body has a Content-Encoding: send it without one"
        raise ProtocolError(INVALID_REQUEST, text, http_status=415)
    if request.body is None:
        raise ProtocolError(
            PARSE_ERROR, "Parse error: the body is not JSON, or not the Base64 it is said to be"
        )
    if not body_within_limit(request.body, limit := ports.config.max_body_bytes):
        raise TooLarge(f"{limit} bytes", "MCP_MAX_BODY_BYTES")
    return caller, request.body


def _failure(
    request_id: RequestId | None,
    failure: ProtocolError,
    ports: Ports,
    request: HttpRequest | None = None,
    status: int | None = None,
) -> HttpResponse:
    status = status or jsonrpc.http_status(failure)
    streamed, fields = None, failure.fields
    if status == 200 and request is not None:
        message = compact_json(jsonrpc.error(request_id, failure))
        streamed, fields = _within_limit(message, failure, request)
    ports.observer.record("request_refused", code=failure.code, status=status, **fields)
    if streamed is not None:
        return streamed
    if status == 200 and request is not None:
        error = ResultTooLarge(request.max_response_bytes)
        ports.observer.failure("result_too_large", error, **failure.fields)
        failure = ProtocolError(INTERNAL_ERROR, str(error))
    answer = error_response(request_id, failure)
    return replace(answer, status=status, headers={**answer.headers, **_TELLING.get(status, {})})


_TELLING: Final = {
    401: {"www-authenticate": "Bearer"},
    405: {"allow": "POST"},
    415: {"accept-encoding": "identity"},
    429: {"retry-after": str(jsonrpc.RETRY_AFTER_S)},
    503: {"retry-after": "10"},
}
"""Headers that a status has to have."""


def error_response(request_id: RequestId | None, failure: ProtocolError) -> HttpResponse:
    """A JSON-RPC error with the HTTP status it travels with."""
    body = compact_json(jsonrpc.error(request_id, failure))
    return HttpResponse(jsonrpc.http_status(failure), body, JSON_HEADERS)


def record_fault(observer: Observer, error: Exception) -> None:
    """Say that a setting is wrong, a definition, or this library."""
    events = {SettingsError: "misconfigured", DefinitionError: "definition_failed"}
    observer.failure(events.get(type(error), "internal_error"), error)


def _within_limit(
    message: str, reply: Reply | ProtocolError, request: HttpRequest
) -> tuple[HttpResponse | None, Mapping[str, Any]]:
    """The response behind as many of its notifications as there is room for, and what the log says.

    None if it is too large by itself.
    """
    if not reply.notifications:
        return _if_fits(HttpResponse(200, message, JSON_HEADERS), request), reply.fields
    events = list[str]()
    room = request.max_response_bytes - event_size(message)
    for notification in reply.notifications:
        event = compact_json(notification)
        room -= event_size(event)
        if room < 0:
            break
        events.append(event)
    answer, fields = build_response(message, events, request.headers), reply.fields
    if dropped := len(reply.notifications) - len(events):
        dropped += fields.get("notifications_dropped", 0)
        fields = {**fields, "notifications_dropped": dropped}
    return _if_fits(answer, request), fields


def _if_fits(answer: HttpResponse, request: HttpRequest) -> HttpResponse | None:
    return answer if payload_size(answer.body) <= request.max_response_bytes else None


def _written(request_id: RequestId, result: Mapping[str, Any]) -> str:
    if isinstance(result, results.PreSerialized):
        return f'{{"jsonrpc":"2.0","id":{compact_json(request_id)},"result":{result.json}}}'
    return compact_json(jsonrpc.result(request_id, result))


def discovery(options: ServerOptions, capabilities: Mapping[str, Any]) -> dict[str, Handler]:
    """The handlers of what every server answers: `server/discover`, and `subscriptions/listen`."""
    result = results.discover(options.server_info, capabilities, options.instructions, options.list_ttl_ms)

    def listen(context: RequestContext) -> Reply | HttpResponse:
        from mcp_roundtrip.server.discovery import Subscriptions  # most clients never do

        return Subscriptions(options.server_info).handlers()[SUBSCRIPTIONS_LISTEN](context)

    return {DISCOVER: lambda context: Reply(result), SUBSCRIPTIONS_LISTEN: listen}


def capabilities(*features: str, has_tasks: bool = False) -> dict[str, Any]:
    """ServerCapabilities. `logging`, because any feature may emit log messages when asked for them."""
    always: dict[str, Any] = {**{feature: {} for feature in features}, "logging": {}}
    return {**always, "extensions": {TASKS_EXTENSION: {}}} if has_tasks else always
