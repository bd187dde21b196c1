"""Forward requests from a front door to the functions of its owners, with the event unchanged.

A call of the endpoint is forwarded to the owner of its feature. A request for `/tools/<owner>` is forwarded
unread: this is the address of one owner, whose function does all checks itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.entry.catalog import Catalog
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import ForwardingFailed, Refusal, SettingsError
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse, body_within_limit
from mcp_roundtrip.server.invocation import Forwarded, Invocation, internal_error, owner_timeout_s
from mcp_roundtrip.server.model import Reply, RequestContext
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.responses import error_response

OWNER_PATHS: Final = "/tools/"
"""The path of an owner is this and its name, behind the base path of the API."""

_WELL_KNOWN: Final = "/.well-known/"


def forward(owner: str, ports: Ports, invocation: Invocation, **feature: Any) -> HttpResponse:
    """Return the response of an owner. `feature` is what `Forwarded` has about a feature of the catalog.

    Raises ForwardingFailed, which is logged (see `forwarding_failed`).
    """
    timeout_s = owner_timeout_s(invocation.deadline_ms - ports.clock_ms())
    deadline_ms = int((ports.clock() + timeout_s) * 1_000)
    trace = None if ports.tracer is None else ports.tracer.current()
    forwarded = Forwarded(deadline_ms, correlation_id=invocation.correlation_id, trace=trace, **feature)
    try:
        raw = ports.forward(owner, invocation.event or {}, forwarded.custom(), timeout_s)
    except SettingsError:  # nothing was sent
        raise
    except Exception as error:
        ports.observer.record_failure("forwarding_failed", error, owner=owner)
        if isinstance(error, ForwardingFailed):
            raise
        raise ForwardingFailed("unexpected") from error
    return HttpResponse(200, raw=raw)


def forwarding_failed(invocation: Invocation) -> ProtocolError:
    """Return the error for a request that could not be forwarded, or whose response was lost."""
    error = internal_error(invocation.correlation_id)
    return Refusal("forwarding_failed", error.code, error.message)


def owner_response(
    catalog: Catalog,
    options: ServerOptions,
    find_feature: Callable[[RequestContext], object],
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
) -> HttpResponse | None:
    """Return the response to a request for the path of an owner; None for the front door's own paths.

    `find_feature` finds the feature of a call in the catalog. Raises ProtocolError with status 404 for a name
    that no owner has.
    """
    before, found, name = request.path.rpartition(OWNER_PATHS)
    if not found or _WELL_KNOWN in f"{before}/":
        return None
    # Behind a rule for the paths of one owner, `/tools/<owner>/tools/<another>` must not be the other's.
    is_nested = OWNER_PATHS in before and not _own_path(ports).startswith(f"{before}/")
    if name not in catalog.owners or is_nested:
        if _is_own_path(request.path, ports):
            return None
        raise ProtocolError(jsonrpc.INVALID_REQUEST, "There is no such tool", http_status=404)
    try:
        response = forward(name, ports, invocation)
    except (ForwardingFailed, SettingsError) as error:
        if (operation := invocation.operation) is not None:
            operation.note_unread_request(request, invocation, options, find_feature)
        if isinstance(error, SettingsError):
            raise
        reply = Reply(forwarding_failed(invocation))
        # A client that looks for metadata evaluates the status.
        status = None if request.method == "POST" else 500
        return error_response(_request_id(request, ports), reply, request, ports.observer, status)
    ports.observer.record("request_forwarded", owner=name)
    return response


def _is_own_path(path: str, ports: Ports) -> bool:
    """Return whether a path is the front door's own, behind a base path such as `/tools`."""
    own = _own_path(ports)
    return own != "/" and f"{path}/".startswith(f"{own}/")


def _own_path(ports: Ports) -> str:
    """Return the path of the front door's URI; `/` if it has none."""
    try:
        audience = ports.config.audience()
    except SettingsError:
        return "/"
    return "/" + audience.partition("://")[2].partition("/")[2].rstrip("/")


def _request_id(request: HttpRequest, ports: Ports) -> jsonrpc.RequestId | None:
    """Return the id of a request that was not read; None if it has none."""
    body, config = request.body or b"", ports.config
    if not body_within_limit(body, config.max_body_bytes):
        return None
    try:
        message = jsonrpc.parse_message(body, config.max_json_values)
    except jsonrpc.InvalidEnvelope as failure:
        return failure.id
    return None if isinstance(message, jsonrpc.Notification) else message.id
