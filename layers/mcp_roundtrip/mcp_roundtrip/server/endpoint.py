"""An MCP endpoint: admits an HTTP request, calls the handler of its method, and writes the response.

A response is within the limit of its event source. The log says how the request ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import InsufficientScope, IssuerUnavailable, Unauthorized
from mcp_roundtrip.auth.scope_hierarchy import with_prefix
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import Refusal, ResultTooLarge
from mcp_roundtrip.protocol import constants, http, jsonrpc, results
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Notification, RequestId
from mcp_roundtrip.protocol.request_validation import InvalidRequest, ValidRequest
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.admission import admit, find_handler
from mcp_roundtrip.server.features_and_app_views import Features
from mcp_roundtrip.server.lambda_invocation import Invocation, internal_error, log_fault
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext

if TYPE_CHECKING:
    from mcp_roundtrip.server.discover_and_initialize import Discovery
    from mcp_roundtrip.server.public_documents import PublicDocuments

TASK_METHODS: Final = (constants.TASKS_GET, constants.TASKS_UPDATE, constants.TASKS_CANCEL)

_STATUS_HEADERS: Final = {
    401: {"www-authenticate": "Bearer"},
    405: {"allow": "POST"},
    415: {"accept-encoding": "identity"},
    429: {"retry-after": str(jsonrpc.RETRY_AFTER_S)},
    503: {"retry-after": "10"},
}
"""The headers that a status requires (RFC 9110)."""


class Endpoint(Struct, frozen=True, dict=True):  # dict: the handlers are created once
    """An MCP endpoint with the features and options of a server.

    `scopes`: those to request first, for the resource metadata.
    `needs`: the names of features by what they need settings for (`deployment.needed_settings`).
    `owner_response`: on a front door, returns the response to a request for another function; otherwise None.
    """

    options: ServerOptions
    features: Features
    scopes: Sequence[str]
    needs: Mapping[str, Sequence[str]]
    owner_response: Callable[[HttpRequest, Ports, Invocation], HttpResponse | None] | None = None

    def respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        """Respond to one request. It raises nothing: a fault of this library becomes -32603."""
        invocation = with_spans(invocation, ports)
        if ports.audit is not None:
            from mcp_roundtrip.server.auditing import with_audit  # off by default

            ports, invocation = with_audit(ports, invocation)
        checked: ValidRequest | InvalidRequest | None = None
        try:
            unadmitted = self._respond_without_admission(request, ports, invocation)
            if unadmitted is not None:
                return unadmitted
            admitted = admit(request, ports, invocation, self.options)
            if isinstance(admitted, Notification):
                ports.observer.record("request_completed", outcome="notification")
                return HttpResponse(202)
            if isinstance(admitted, InvalidRequest):
                checked = admitted
                raise admitted.failure
            checked = admitted.request
            return self._handle(admitted, request)
        except Exception as error:
            reply = _reply_to(error, ports, invocation)
            request_id, status = None, None
            if checked is not None:
                request_id = checked.id
                if checked.is_legacy and isinstance(error, ProtocolError):
                    status = 200  # such a client does not read the body of a 4xx
            response = error_response(request_id, reply, request, ports, invocation, status)
            if not isinstance(error, (Unauthorized, InsufficientScope)):
                return response
            challenge = self._documents(ports, invocation).challenge(error)
            return replace(response, headers={**response.headers, **challenge})

    def _respond_without_admission(
        self, request: HttpRequest, ports: Ports, invocation: Invocation
    ) -> HttpResponse | None:
        """Return the response of the owner that a path names, or a public document; None for a message."""
        if self.owner_response is not None:
            owned = self.owner_response(request, ports, invocation)
            if owned is not None:
                return owned
        if request.method != "POST" or request.path.endswith("/questions"):  # whose form is posted
            return self._documents(ports, invocation).respond(request)
        return None

    def _handle(self, context: RequestContext, request: HttpRequest) -> HttpResponse:
        context.invocation.operation.note_request(context)
        handler = find_handler(self._handlers_for(context), context.request.method)
        reply: Reply | HttpResponse = context.invocation.spans.message(handler, context)
        if isinstance(reply, HttpResponse):
            return reply
        if isinstance(reply.body, ProtocolError):
            status = 200 if context.request.is_legacy else None
            return error_response(
                context.request.id, reply, request, context.ports, context.invocation, status
            )
        return result_response(context, reply, request)

    def _handlers_for(self, context: RequestContext) -> Mapping[str, Handler]:
        if context.request.is_legacy:
            return self.discovery.legacy_handlers
        if context.request.method in self.features.call_handlers:
            return self.features.call_handlers
        if context.request.method in TASK_METHODS and self.features.serves_tasks(context):
            from mcp_roundtrip.server.task_methods import TASK_HANDLERS  # most servers have no tasks

            return TASK_HANDLERS
        return self.discovery.handlers

    @cached_property
    def discovery(self) -> Discovery:
        from mcp_roundtrip.server.discover_and_initialize import Discovery  # a call needs none

        return Discovery(self.options, self.features)

    def _documents(self, ports: Ports, invocation: Invocation) -> PublicDocuments:
        # Most requests are authorized calls.
        from mcp_roundtrip.server.public_documents import PublicDocuments

        return PublicDocuments(ports, self.scopes, self.options, invocation.operation)


def with_spans(invocation: Invocation, ports: Ports) -> Invocation:
    """Add what makes the spans of an invocation, if the deployment traces."""
    if ports.tracer is None:
        return invocation
    from mcp_roundtrip.server.spans import ServerSpans  # off by default

    return replace(invocation, spans=ServerSpans(ports.tracer))


def _reply_to(error: Exception, ports: Ports, invocation: Invocation) -> Reply:
    """Return the reply to an exception, and log it (basic/authorization "Error Handling")."""
    if isinstance(error, InsufficientScope):
        ports.observer.record("insufficient_scope", scopes=list(error.scopes))
        scopes = with_prefix(error.scopes, ports.settings.scope_prefix)
        text = f"Insufficient scope: sign in with {', '.join(scopes)}"
        return Reply(Refusal("insufficient_scope", INVALID_REQUEST, text, http_status=403))
    if isinstance(error, Unauthorized):
        ports.observer.record("unauthorized", reason=error.reason)
        status = error.http_status
        return Reply(Refusal(error.reason, INVALID_REQUEST, "Unauthorized", http_status=status))
    if isinstance(error, ProtocolError):
        return Reply(error, log_fields=error.log_fields)
    if isinstance(error, IssuerUnavailable):  # the log already has the failed request for the issuer's keys
        text = f"Tokens cannot be verified at the moment (correlation id {invocation.correlation_id})"
        unavailable = ProtocolError(INTERNAL_ERROR, text, http_status=503)
        return Reply(unavailable, log_fields={"reason": error.reason})
    log_fault(ports.observer, error)
    return Reply(internal_error(invocation.correlation_id))


# -- responses ----------------------------------------------------------------------------------------------


def result_response(context: RequestContext, reply: Reply, request: HttpRequest) -> HttpResponse:
    """Write a result, and log `request_completed`. Raises ProtocolError for a result that is too large."""
    assert not isinstance(reply.body, ProtocolError)
    message = _result_message(context.request.id, reply.body)
    response, log_fields = _within_limit(message, reply, request)
    if response is None:
        response = _too_large_response(context, reply, request.max_response_bytes)
        log_fields = {**log_fields, "outcome": "result_too_large"}
    fields = {"method": context.request.method, **log_fields}
    context.ports.observer.record("request_completed", **fields)
    context.invocation.operation.end_request("request_completed", fields, reply)
    return replace(response, headers={**response.headers, **reply.headers})


def error_response(
    request_id: RequestId | None,
    reply: Reply,
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
    status: int | None = None,
) -> HttpResponse:
    """Write a JSON-RPC error, and log `request_refused`. `status` overrides the one of the error."""
    error = reply.body
    assert isinstance(error, ProtocolError)
    status = status or http.http_status(error)
    response, log_fields = None, reply.log_fields
    if status == 200:
        response, log_fields = _within_limit(compact_json(jsonrpc.error(request_id, error)), reply, request)
    fields = {"code": error.code, "status": status, **log_fields}
    ports.observer.record("request_refused", **fields)
    if response is None:
        if status == 200:
            too_large = ResultTooLarge(request.max_response_bytes)
            ports.observer.record_failure("result_too_large", too_large, **reply.log_fields)
            error = ProtocolError(INTERNAL_ERROR, f"{too_large}{reply.repeated}")
        plain = plain_error_response(request_id, error)
        headers = {**plain.headers, **_STATUS_HEADERS.get(status, {})}
        response = replace(plain, status=status, headers=headers)
    invocation.operation.end_request("request_refused", fields, reply)
    return response


def plain_error_response(request_id: RequestId | None, error: ProtocolError) -> HttpResponse:
    body = compact_json(jsonrpc.error(request_id, error))
    return HttpResponse(http.http_status(error), body, http.JSON_HEADERS)


def _within_limit(
    message: str, reply: Reply, request: HttpRequest
) -> tuple[HttpResponse | None, Mapping[str, Any]]:
    """Return the response, None if it is too large, with the notifications that fit; and the log fields."""
    events, log_fields = list[str](), reply.log_fields
    room = request.max_response_bytes - http.event_size(message) if reply.notifications else 0
    for notification in reply.notifications:
        event = compact_json(notification)
        room -= http.event_size(event)
        if room < 0:
            break
        events.append(event)
    response = http.build_response(message, events, request.headers)
    if dropped := len(reply.notifications) - len(events):
        dropped += log_fields.get("notifications_dropped", 0)
        log_fields = {**log_fields, "notifications_dropped": dropped}
    fits = http.payload_size(response.body) <= request.max_response_bytes
    return response if fits else None, log_fields


def _too_large_response(context: RequestContext, reply: Reply, limit: int) -> HttpResponse:
    """Report a result that Lambda or a load balancer would refuse.

    Raises ProtocolError, except for the result of a tool: after a JSON-RPC error, clients poll a task again.
    """
    error = ResultTooLarge(limit)
    context.ports.observer.record_failure("result_too_large", error, **reply.log_fields)
    assert not isinstance(reply.body, ProtocolError)
    text = f"{error}{reply.repeated}"
    has_result_of_task = "result" in reply.body
    if context.request.method != constants.TOOLS_CALL and not has_result_of_task:
        raise ProtocolError(INTERNAL_ERROR, text)
    result = results.tool_error(reply.body["_meta"][constants.META_SERVER_INFO], text)
    if has_result_of_task:
        result = {**reply.body, "result": result}
    if context.request.is_legacy:
        del result["resultType"]
    return HttpResponse(200, _result_message(context.request.id, result), http.JSON_HEADERS)


def _result_message(request_id: RequestId, result: Mapping[str, Any]) -> str:
    if isinstance(result, results.PreSerialized):
        return f'{{"jsonrpc":"2.0","id":{compact_json(request_id)},"result":{result.json}}}'
    return compact_json(jsonrpc.result(request_id, result))
