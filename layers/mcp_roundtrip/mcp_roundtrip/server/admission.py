"""Every check that a request has to pass before a feature runs. The first one that fails decides the error.

==  ======================================  ===============  ===============================
No  check                                   error            function
==  ======================================  ===============  ===============================
1   the Origin is allowed                   403              `admit`
2   the HTTP method is POST                 405              `admit`
3   the caller is identified                401, 400, 503    `identify`
4   the body has no content coding          415              `admit`
5   the body is readable and not too large  -32700, 413      `admit`
6   JSON-RPC, headers, `_meta`, version     -32700 … -32022  `validate_request`
7   the method exists                       -32601           `find_handler`
8   the params have the right types         -32602           `CallParams.read`, `read_uri` …
9   the feature exists                      -32602           `find_by_name`, `find_by_uri`
10  the caller has the scopes               403              `authorize`
11  parameter headers match the arguments   -32020           `check_call_headers`
12  the client has the capabilities         -32021           `require_capabilities`
==  ======================================  ===============  ===============================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from mcp_roundtrip.auth.callers import Caller, InsufficientScope
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import INVALID_PARAMS, MissingClientCapability, ProtocolError
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.protocol.capabilities import CapabilityPath, missing_capabilities
from mcp_roundtrip.protocol.http import HttpRequest, body_within_limit
from mcp_roundtrip.protocol.jsonrpc import Notification
from mcp_roundtrip.protocol.mirrored_headers import check_parameter_headers
from mcp_roundtrip.protocol.request_validation import (
    InvalidRequest,
    ValidRequest,
    trace_context,
    unknown_method,
    validate_request,
)
from mcp_roundtrip.server.lambda_invocation import CATALOG_DRIFT_REMEDY, Invocation
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.request_types import FeatureCall, Handler, RequestContext

if TYPE_CHECKING:
    from mcp_roundtrip.protocol.resource_uris import UriIndex


MAX_URI: Final = 8_192
"""Characters of a URI; the time to match one grows with its length."""

Reference = tuple[str, str]
"""Kind and name: ("prompt", its name) or ("resource", its URI template)."""


class Scoped(Protocol):
    @property
    def scopes(self) -> tuple[str, ...]: ...


AnyScoped = TypeVar("AnyScoped", bound=Scoped)


def admit(
    request: HttpRequest, ports: Ports, invocation: Invocation, options: ServerOptions
) -> RequestContext | Notification | InvalidRequest:
    """Run the checks 1 to 6. The first five raise ProtocolError, Unauthorized or IssuerUnavailable."""
    origin = request.headers.get("origin")
    if origin is not None and origin not in ports.settings.allowed_origins:
        raise ProtocolError(jsonrpc.INVALID_REQUEST, "This Origin is not allowed", http_status=403)
    if request.method != "POST":
        raise ProtocolError(jsonrpc.INVALID_REQUEST, "The MCP endpoint accepts POST only", http_status=405)
    caller = identify(request, ports)
    checked = validate_request(
        request.headers,
        _readable_body(request, ports.settings.max_body_bytes),
        serves_legacy=options.legacy_clients,
        max_values=ports.settings.max_json_values,
    )
    if not isinstance(checked, ValidRequest):
        return checked
    # What the client says about itself is in the params, or in the session id of one of earlier versions.
    subject = None if caller.principal is None else caller.principal.subject
    ports.observer.redact(lambda: (checked.params, checked.meta.info, subject))
    if checked.meta.trace:
        ports.observer.tag(**trace_context(checked.meta.trace).log_fields())
    headers = None if request.is_direct else request.headers
    return RequestContext(checked, caller.principal, ports, invocation, options, headers, caller.scopes)


def identify(request: HttpRequest, ports: Ports) -> Caller:
    """Return the caller, with its scopes as tools name them. Raises Unauthorized or IssuerUnavailable.

    Some authorization servers require a prefix in requests for scopes: Entra ID the URI of the application,
    and its tokens have none; Amazon Cognito the identifier of the resource server, and its tokens have it.
    """
    caller = ports.authenticator.authenticate(request.headers, request.authorizer)
    if not (prefix := ports.settings.scope_prefix):
        return caller
    return Caller(caller.principal, frozenset(scope.removeprefix(prefix) for scope in caller.scopes))


def _readable_body(request: HttpRequest, limit: int) -> str | bytes:
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        text = "The body has a Content-Encoding: send it without one"
        raise ProtocolError(jsonrpc.INVALID_REQUEST, text, http_status=415)
    if request.body is None:
        raise ProtocolError(
            jsonrpc.PARSE_ERROR, "Parse error: the body is not JSON, or not the Base64 it is said to be"
        )
    if not body_within_limit(request.body, limit):
        raise jsonrpc.BodyTooLarge(f"{limit} bytes", "MCP_MAX_BODY_BYTES")
    return request.body


def find_handler(handlers: Mapping[str, Handler], method: str) -> Handler:
    handler = handlers.get(method)
    if handler is None:
        raise unknown_method(method)
    return handler


def find_by_name(items: Mapping[str, AnyScoped], context: RequestContext, kind: str = "tool") -> AnyScoped:
    """Return the item that `params.name` names. Raises ProtocolError -32602 or InsufficientScope."""
    name = context.params.get("name")
    if not isinstance(name, str):
        raise jsonrpc.invalid_params("name must be a string")
    return authorize(items.get(name), context, lambda: unknown_item(kind, name))


def unknown_item(kind: str, name: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:128]}")


def authorize(
    item: AnyScoped | None,
    context: RequestContext,
    unknown: Callable[[], ProtocolError],
    scopes: Sequence[str] | None = None,
) -> AnyScoped:
    """Return the item if the caller may use it. Raises the error from `unknown`, or InsufficientScope.

    Look the item up among all items: one among the permitted items may not be what the request means.
    `scopes` replace the item's own if several items match the request.
    """
    if item is None:
        if context.invocation.forwarded.server_info is not None:  # the front door lists it
            observer = context.ports.observer
            observer.record("catalog_drift", method=context.request.method, remedy=CATALOG_DRIFT_REMEDY)
        raise unknown()
    required = item.scopes if scopes is None else scopes
    context.invocation.operation.note_feature(item, required, context)
    if not context.options.hierarchy.satisfies(context.scopes, required):
        raise unknown() if context.hides_unauthorized else InsufficientScope(required)
    return item


def unknown_resource(uri: str, context: RequestContext) -> ProtocolError:
    code = jsonrpc.LEGACY_RESOURCE_NOT_FOUND if context.request.is_legacy else INVALID_PARAMS
    return ProtocolError(code, "Resource not found", {"uri": uri})


def read_uri(params: Mapping[str, Any]) -> str:
    """Return `params.uri`. Raises ProtocolError -32602."""
    uri = params.get("uri")
    if not isinstance(uri, str) or len(uri) > MAX_URI:
        raise jsonrpc.invalid_params(f"uri must be a string of at most {MAX_URI} characters")
    return uri


def find_by_uri(
    index: UriIndex[AnyScoped], uri: str, context: RequestContext
) -> tuple[AnyScoped, dict[str, str]]:
    """Return the item of a URI, and the values of its variables. Raises ProtocolError or InsufficientScope.

    Where several templates match equally well, the first one counts, and the caller needs the scopes of all:
    an open template must not expose what another one protects.
    """
    matches = index.find(uri)
    item, variables = matches[0] if matches else (None, {})
    scopes = tuple(dict.fromkeys(scope for each, _ in matches for scope in each.scopes))
    return authorize(item, context, lambda: unknown_resource(uri, context), scopes), variables


def read_reference(params: Mapping[str, Any]) -> Reference:
    """Return `params.ref`. Raises ProtocolError -32602."""
    match params.get("ref"):
        case {"type": "ref/prompt", "name": str(name)}:
            return ("prompt", name)
        case {"type": "ref/resource", "uri": str(uri)}:
            return ("resource", uri)
    raise jsonrpc.invalid_params("ref must be a ref/prompt with a name or a ref/resource with a uri")


def check_call_headers(call: FeatureCall) -> None:
    """Check that `Mcp-Param-*` headers agree with the arguments (SEP-2243). Raises ProtocolError -32020."""
    mirrored, context = call.feature.parameters.parameter_headers, call.context
    if mirrored and context.headers is not None:
        is_required = not context.request.is_legacy
        check_parameter_headers(mirrored, call.params.arguments, context.headers, required=is_required)


def require_capabilities(
    context: RequestContext, required: Sequence[CapabilityPath], needed_by: str | None = None
) -> None:
    """Raise MissingClientCapability (-32021) unless the client declared all. `needed_by`: for its message."""
    lacking = missing_capabilities(context.request.meta.capabilities, required)
    if lacking:
        raise MissingClientCapability(lacking, needed_by=needed_by or context.request.method)
