"""An MCP endpoint: admits an HTTP request, calls the handler of its method, and responds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Notification, RequestId
from mcp_roundtrip.protocol.request_validation import InvalidRequest, ValidRequest, unknown_method
from mcp_roundtrip.server.admission import admit, find_handler
from mcp_roundtrip.server.invocation import Invocation, internal_error
from mcp_roundtrip.server.model import Handler, Reply, RequestContext
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.responses import error_response, log_fault, result_response

if TYPE_CHECKING:
    from mcp_roundtrip.server.public_documents import PublicDocuments

OwnerResponse = Callable[[HttpRequest, Ports, Invocation], HttpResponse | None]


class Endpoint(Struct, frozen=True):
    """The handlers of an endpoint by method.

    `legacy_handlers`: returns the handlers for clients that open with `initialize`; None to refuse them.
    `name`, `scopes`: the name of the resource and the scopes to request first, for the resource metadata.
    `owner_response`: on a front door, returns the response to a request for another function; otherwise None.
    `options`: the options of the server, for its Server Card.
    `needs`: the names of features by what they need settings for (`deployment.missing_settings`).
    """

    handlers: Mapping[str, Handler]
    legacy_handlers: Callable[[], Mapping[str, Handler]] | None = None
    name: str | None = None
    scopes: Sequence[str] = ()
    owner_response: OwnerResponse | None = None
    options: ServerOptions | None = None
    needs: Mapping[str, Sequence[str]] = MappingProxyType({})

    def respond(self, request: HttpRequest, ports: Ports, invocation: Invocation) -> HttpResponse:
        """Respond to one request. It raises nothing: a fault of this library becomes -32603."""
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
            admitted = admit(request, ports, invocation, serves_legacy=self.legacy_handlers is not None)
            if isinstance(admitted, Notification):
                ports.observer.record("request_completed", outcome="notification")
                return HttpResponse(202)
            if isinstance(admitted, InvalidRequest):
                checked = admitted
                raise admitted.failure
            checked = admitted.request
            return self._handle(admitted, request)
        except Exception as error:
            return self._respond_to_exception(error, checked, request, ports, invocation)

    def _handle(self, context: RequestContext, request: HttpRequest) -> HttpResponse:
        if (operation := context.invocation.operation) is not None:
            operation.note_request(context)
        is_legacy = context.request.is_legacy
        legacy = self.legacy_handlers if is_legacy else None
        handler = find_handler(self.handlers if legacy is None else legacy(), context.request.method)
        if (tracer := context.ports.tracer) is None:
            reply = handler(context)
        else:
            from mcp_roundtrip.server.spans import traced_message  # off by default

            reply = traced_message(tracer, handler, context)
        if isinstance(reply, HttpResponse):
            return reply
        if isinstance(reply.body, ProtocolError):
            status = 200 if is_legacy else None
            return error_response(context.request.id, reply, request, context.ports.observer, status)
        return result_response(context, reply, request)

    def _respond_to_exception(
        self,
        error: Exception,
        checked: ValidRequest | InvalidRequest | None,
        request: HttpRequest,
        ports: Ports,
        invocation: Invocation,
    ) -> HttpResponse:
        request_id = None if checked is None else checked.id
        status = None
        if isinstance(error, (Unauthorized, InsufficientScope)):
            return self._refuse(request_id, error, request, ports)
        if isinstance(error, ProtocolError):
            reply = Reply(error, log_fields=error.log_fields)
            if checked is not None and checked.is_legacy:
                status = 200  # such a client does not read the body of a 4xx
        elif isinstance(error, IssuerUnavailable):
            # The log already has the failed request for the issuer's keys.
            text = f"Tokens cannot be verified at the moment (correlation id {invocation.correlation_id})"
            unavailable = ProtocolError(INTERNAL_ERROR, text, http_status=503)
            reply = Reply(unavailable, log_fields={"reason": error.reason})
        else:
            log_fault(ports.observer, error)
            reply = Reply(internal_error(invocation.correlation_id))
        return error_response(request_id, reply, request, ports.observer, status)

    def _refuse(
        self,
        request_id: RequestId | None,
        refusal: Unauthorized | InsufficientScope,
        request: HttpRequest,
        ports: Ports,
    ) -> HttpResponse:
        """Respond with 401 or 403 and a challenge (basic/authorization "Error Handling")."""
        if isinstance(refusal, InsufficientScope):
            ports.observer.record("insufficient_scope", scopes=list(refusal.scopes))
            error = Refusal("insufficient_scope", INVALID_REQUEST, "Insufficient scope", http_status=403)
        else:
            ports.observer.record("unauthorized", reason=refusal.reason)
            status = refusal.http_status
            error = Refusal(refusal.reason, INVALID_REQUEST, "Unauthorized", http_status=status)
        response = error_response(request_id, Reply(error), request, ports.observer)
        return replace(response, headers={**response.headers, **self._documents(ports).challenge(refusal)})

    def _documents(self, ports: Ports) -> PublicDocuments:
        # Most requests are authorized calls.
        from mcp_roundtrip.server.public_documents import PublicDocuments

        serves_legacy = self.legacy_handlers is not None
        return PublicDocuments(ports, self.name, self.scopes, self.options, serves_legacy)


def make_endpoint(
    options: ServerOptions,
    features: Mapping[str, Mapping[str, Handler]],
    legacy_handlers: Callable[[], Mapping[str, Handler]] | None,
    scopes: Sequence[str],
    *,
    has_tasks: bool,
    needs: Mapping[str, Sequence[str]],
    has_views: bool = False,
    skills: Mapping[str, Handler] | None = None,
    owner_response: OwnerResponse | None = None,
) -> Endpoint:
    """Create the endpoint with the handlers of these capabilities, and those that every server has.

    `legacy_handlers` is called once, at the first request of a client that opens with `initialize`.
    `skills`: the handlers of the methods of SEP-2640, which such clients do not have.
    """
    common = _CommonMethods(options, tuple(features), has_tasks, has_views, bool(skills))
    handlers = created_at_first_use(common.discovery, DISCOVER, SUBSCRIPTIONS_LISTEN)
    for methods in features.values():
        handlers |= methods
    handlers |= skills or {}
    if has_tasks:
        handlers |= created_at_first_use(common.tasks, TASKS_GET, TASKS_UPDATE, TASKS_CANCEL)
    name = options.server_info.get("title") or options.server_info["name"]
    legacy = None if legacy_handlers is None else cache(legacy_handlers)
    return Endpoint(handlers, legacy, name, scopes, owner_response, options, needs)


class _CommonMethods(Struct, frozen=True):
    """The methods that servers with any features have. A call needs none of them."""

    options: ServerOptions
    features: tuple[str, ...]
    has_tasks: bool
    has_views: bool
    has_skills: bool

    def discovery(self) -> Mapping[str, Handler]:
        """Return the handlers of discovery."""
        from mcp_roundtrip.server.discovery import DiscoveryMethods

        return DiscoveryMethods(
            self.options, self.features, self.has_tasks, self.has_views, self.has_skills
        ).handlers()

    def tasks(self) -> Mapping[str, Handler]:
        """Return the handlers of the tasks extension."""
        from mcp_roundtrip.server.task_methods import TaskMethods

        return TaskMethods(self.options.server_info).handlers()


SKILL_METHODS: Final = (SKILLS_LIST, SKILLS_GET, RESOURCES_DIRECTORY_READ)
"""The methods of SEP-2640."""

RESOURCE_METHODS: Final = (RESOURCES_LIST, RESOURCES_TEMPLATES_LIST, RESOURCES_READ)


def created_at_first_use(create: Callable[[], Mapping[str, Handler]], *methods: str) -> dict[str, Handler]:
    """Return handlers of these methods that are all created at the first request for one of them."""
    return dict.fromkeys(methods, _Deferred(create).handle)


class _Deferred(Struct, frozen=True, dict=True):  # dict: the handlers are created once
    """Handlers of methods that most requests do not need."""

    create: Callable[[], Mapping[str, Handler]]

    @cached_property
    def _created(self) -> Mapping[str, Handler]:
        return self.create()

    def handle(self, context: RequestContext) -> Reply | HttpResponse:
        """Handle a request for one of the methods."""
        return self._created[context.request.method](context)


def with_views(
    features: Mapping[str, Mapping[str, Handler]],
    options: ServerOptions,
    read: Callable[[RequestContext, str], Reply | HttpResponse | None],
) -> dict[str, Mapping[str, Handler]]:
    """Add the methods of views to the handlers of these capabilities.

    `read` returns the view of a `ui://` URI, or None.
    """
    resources = features.get("resources", {})
    views = _ViewResources(options, read, resources.get(RESOURCES_READ))
    if resources:
        return {**features, "resources": {**resources, RESOURCES_READ: views.read_resource}}
    more: dict[str, Handler] = {
        RESOURCES_LIST: views.list_resources,
        RESOURCES_TEMPLATES_LIST: views.list_templates,
        RESOURCES_READ: views.read_resource,
    }
    return {**features, "tools": {**features["tools"], **more}}


class _ViewResources(Struct, frozen=True):
    """The handlers of resources of a server with views. `read_other`: reads its other resources."""

    options: ServerOptions
    read: Callable[[RequestContext, str], Reply | HttpResponse | None]
    read_other: Handler | None

    def read_resource(self, context: RequestContext) -> Reply | HttpResponse:
        """Read a view, or another resource."""
        uri = context.params.get("uri")
        if isinstance(uri, str) and uri.startswith("ui://"):
            view = self.read(context, uri)
            if view is not None:
                return view
        if self.read_other is None:
            raise unknown_method(RESOURCES_READ)
        return self.read_other(context)

    def list_resources(self, context: RequestContext) -> Reply | HttpResponse:
        """Return an empty list: lists omit views."""
        return self._list_nothing("resources", context)

    def list_templates(self, context: RequestContext) -> Reply | HttpResponse:
        """Return an empty list."""
        return self._list_nothing("resourceTemplates", context)

    def _list_nothing(self, member: str, context: RequestContext) -> Reply | HttpResponse:
        if not shows_apps(context.request.meta.capabilities):
            raise unknown_method(context.request.method)
        return Reply(results.cacheable(self.options.server_info, self.options.list_ttl_ms, **{member: []}))
