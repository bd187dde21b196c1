"""An MCP endpoint: admits an HTTP request, calls the handler of its method, and responds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import InsufficientScope, IssuerUnavailable, Unauthorized
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import Refusal
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.constants import (
    DISCOVER,
    RESOURCES_DIRECTORY_READ,
    RESOURCES_LIST,
    RESOURCES_READ,
    RESOURCES_TEMPLATES_LIST,
    SKILLS_GET,
    SKILLS_LIST,
    SUBSCRIPTIONS_LISTEN,
    TASKS_CANCEL,
    TASKS_GET,
    TASKS_UPDATE,
    TOOLS_LIST,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Notification
from mcp_roundtrip.protocol.request_validation import InvalidRequest, ValidRequest, unknown_method
from mcp_roundtrip.server.admission import admit, find_handler
from mcp_roundtrip.server.invocation import Invocation, internal_error
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext
from mcp_roundtrip.server.responses import error_response, log_fault, result_response
from mcp_roundtrip.server.views import ReadView, read_view

if TYPE_CHECKING:
    from mcp_roundtrip.server.discovery import Discovery
    from mcp_roundtrip.server.lists import ListedTool
    from mcp_roundtrip.server.public_documents import PublicDocuments

ToolWithView = TypeVar("ToolWithView", bound="ListedTool")

OwnerResponse = Callable[[HttpRequest, Ports, Invocation], HttpResponse | None]


class Endpoint(Struct, frozen=True):
    """The handlers of an endpoint by method.

    `options`: those of the server.
    `legacy_handlers`: returns the handlers for clients that open with `initialize`; None to refuse them.
    `scopes`: those to request first, for the resource metadata.
    `owner_response`: on a front door, returns the response to a request for another function; otherwise None.
    `needs`: the names of features by what they need settings for (`deployment.missing_settings`).
    """

    handlers: Mapping[str, Handler]
    options: ServerOptions
    legacy_handlers: Callable[[], Mapping[str, Handler]] | None
    scopes: Sequence[str]
    owner_response: OwnerResponse | None
    needs: Mapping[str, Sequence[str]]

    def respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        """Respond to one request. It raises nothing: a fault of this library becomes -32603."""
        invocation = with_spans(invocation, ports)
        if ports.audit is None:
            return self._respond(request, ports, invocation)
        from mcp_roundtrip.server.auditing import respond_with_audit  # off by default

        return respond_with_audit(self._respond, request, ports, invocation)

    def _respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        checked: ValidRequest | InvalidRequest | None = None
        try:
            if self.owner_response is not None:
                owned = self.owner_response(request, ports, invocation)
                if owned is not None:
                    return owned
            if request.method != "POST" or request.path.endswith("/questions"):  # whose form is posted
                document = self._documents(ports).respond(request, invocation.operation)
                if document is not None:
                    return document
            serves_legacy = self.legacy_handlers is not None
            admitted = admit(request, ports, invocation, self.options, serves_legacy=serves_legacy)
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
            response = error_response(request_id, reply, request, ports.observer, status)
            if not isinstance(error, (Unauthorized, InsufficientScope)):
                return response
            challenge = self._documents(ports).challenge(error)
            return replace(response, headers={**response.headers, **challenge})

    def _handle(self, context: RequestContext, request: HttpRequest) -> HttpResponse:
        if (operation := context.invocation.operation) is not None:
            operation.note_request(context)
        is_legacy = context.request.is_legacy
        legacy = self.legacy_handlers if is_legacy else None
        handler = find_handler(self.handlers if legacy is None else legacy(), context.request.method)
        spans = context.invocation.spans
        reply = handler(context) if spans is None else spans.message(handler, context)
        if isinstance(reply, HttpResponse):
            return reply
        if isinstance(reply.body, ProtocolError):
            status = 200 if is_legacy else None
            return error_response(context.request.id, reply, request, context.ports.observer, status)
        return result_response(context, reply, request)

    def _documents(self, ports: Ports) -> PublicDocuments:
        # Most requests are authorized calls.
        from mcp_roundtrip.server.public_documents import PublicDocuments

        return PublicDocuments(ports, self.scopes, self.options, self.legacy_handlers is not None)


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
        return Reply(Refusal("insufficient_scope", INVALID_REQUEST, "Insufficient scope", http_status=403))
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


def has_views(tools: Mapping[str, ListedTool]) -> bool:
    """Return whether any tool has results, or may ask questions, that a view shows."""
    return any(each.view_uri or (each.asks and "app" in each.channels) for each in tools.values())


def make_endpoint(
    options: ServerOptions,
    tools: Mapping[str, ListedTool],
    features: Mapping[str, Mapping[str, Handler]],
    scopes: Sequence[str],
    *,
    needs: Mapping[str, Sequence[str]],
    skills: Mapping[str, Handler],
    serves_legacy: bool,
    dialect_call: Handler | None,
    owner_response: OwnerResponse | None = None,
) -> Endpoint:
    """Create the endpoint with the handlers of these capabilities, and those that every server has.

    `tools` stay the same until the next deployment on a front door, which has an `owner_response`.
    `skills`: the handlers of the methods of SEP-2640, which clients that open with `initialize` do not have.
    `dialect_call`: calls a tool in the dialect of tasks; None if the server does not have it.
    """

    @cache
    def discovery() -> Discovery:
        from mcp_roundtrip.server.discovery import Discovery  # a call needs none

        is_constant = owner_response is not None
        return Discovery(options, features, tools, has_views(tools), bool(skills), is_constant)

    def tasks() -> Mapping[str, Handler]:
        from mcp_roundtrip.server.task_methods import TASK_HANDLERS  # most servers have no tasks

        return TASK_HANDLERS

    has_tasks = any(each.task for each in tools.values())
    on_page = [name for name, each in tools.items() if each.asks and "page" in each.channels]
    handlers = created_at_first_use(
        lambda: discovery().handlers(), DISCOVER, SUBSCRIPTIONS_LISTEN, TOOLS_LIST
    )
    for methods in (*features.values(), skills):
        handlers |= methods
    if has_tasks:
        handlers |= created_at_first_use(tasks, TASKS_GET, TASKS_UPDATE, TASKS_CANCEL)
    legacy = cache(lambda: discovery().legacy_handlers(dialect_call)) if serves_legacy else None
    return Endpoint(handlers, options, legacy, scopes, owner_response, {**needs, "page": on_page})


SKILL_METHODS: Final = (SKILLS_LIST, SKILLS_GET, RESOURCES_DIRECTORY_READ)
"""The methods of SEP-2640."""

RESOURCE_METHODS: Final = (RESOURCES_LIST, RESOURCES_TEMPLATES_LIST, RESOURCES_READ)


def created_at_first_use(create: Callable[[], Mapping[str, Handler]], *methods: str) -> dict[str, Handler]:
    """Return handlers of these methods that are all created at the first request for one of them."""
    created = cache(create)

    def handle(context: RequestContext) -> Reply | HttpResponse:
        return created()[context.request.method](context)

    return dict.fromkeys(methods, handle)


def with_views(
    features: Mapping[str, Mapping[str, Handler]],
    tools: Mapping[str, ToolWithView],
    read: ReadView[ToolWithView],
) -> Mapping[str, Mapping[str, Handler]]:
    """Add the views of tools to the handlers of these capabilities, if there are any.

    `read` reads the view of a tool.
    """
    if not has_views(tools):
        return features
    resources = features.get("resources", {})
    read_resource = partial(_read_resource, tools, read, resources.get(RESOURCES_READ))
    if resources:
        return {**features, "resources": {**resources, RESOURCES_READ: read_resource}}
    more: dict[str, Handler] = {
        RESOURCES_LIST: partial(_list_nothing, "resources"),
        RESOURCES_TEMPLATES_LIST: partial(_list_nothing, "resourceTemplates"),
        RESOURCES_READ: read_resource,
    }
    return {**features, "tools": {**features["tools"], **more}}


def _read_resource(
    tools: Mapping[str, ToolWithView],
    read: ReadView[ToolWithView],
    read_other: Handler | None,
    context: RequestContext,
) -> Reply | HttpResponse:
    """Read a view, or another resource, if there are any."""
    uri = context.params.get("uri")
    if isinstance(uri, str) and uri.startswith("ui://"):
        view = read_view(tools, context, uri, read)
        if view is not None:
            return view
    if read_other is None:
        raise unknown_method(RESOURCES_READ)
    return read_other(context)


def _list_nothing(member: str, context: RequestContext) -> Reply:
    """Return an empty list: lists omit views."""
    if not shows_apps(context.request.meta.capabilities):
        raise unknown_method(context.request.method)
    options = context.options
    return Reply(results.cacheable(options.server_info, options.list_ttl_ms, **{member: []}))
