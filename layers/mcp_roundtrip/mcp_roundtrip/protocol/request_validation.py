"""Validate the parts that every MCP request has, before its method is dispatched.

The first check that fails decides the error. The checks, in order:

1. The body is one JSON-RPC message (-32700, -32600).
2. The mirrored headers agree with it (-32020).
3. `_meta` has its two required fields (-32602).
4. The protocol version is supported (-32022).

A client that opens with `initialize` sends neither those headers nor those fields. Where such clients are
served, only the headers they do send have to agree. The server checks what depends on its features (method,
name, scopes, required capabilities) afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol import constants, jsonrpc
from mcp_roundtrip.protocol.jsonrpc import JsonRpcRequest, Notification, RequestId
from mcp_roundtrip.protocol.mirrored_headers import check_headers
from mcp_roundtrip.protocol.session_id import SessionId

if TYPE_CHECKING:
    from mcp_roundtrip.protocol.trace import TraceContext


class RequestMeta(Struct, frozen=True):
    """The `_meta` of a request, or what a client of the earlier versions declared with `initialize`.

    Nothing in it is verified. The client's `info` is for display, logs and known faults of clients.
    `knows_capabilities`: False if the client may have declared capabilities that did not reach this request.
    `session_nonce`: identifies a session of an earlier version, and authenticates no caller.
    """

    protocol_version: str
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any] | None = None
    progress_token: str | int | None = None
    log_level: str | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)
    """The trace context as sent (see `trace_context`)."""
    knows_capabilities: bool = True
    session_nonce: str | None = None


def trace_context(meta: Mapping[str, Any]) -> TraceContext:
    """Parse the trace context in the `_meta` of a request. Raises nothing."""
    from mcp_roundtrip.protocol.trace import TraceContext  # 1.4 ms, and most requests have none

    return TraceContext.from_meta(meta)


class ValidRequest(JsonRpcRequest, frozen=True):
    """A request that passed `validate_request`."""

    meta: RequestMeta

    @property
    def is_legacy(self) -> bool:
        """Whether the client opens with `initialize`."""
        return self.meta.protocol_version in constants.LEGACY_VERSIONS


class InvalidRequest(Struct, frozen=True):
    """A request that failed a check. `id` is None if it could not be read."""

    id: RequestId | None
    failure: ProtocolError
    is_legacy: bool = False


def validate_request(
    headers: Mapping[str, str],
    body: str | bytes,
    *,
    serves_legacy: bool = False,
    max_values: int | None = None,
) -> ValidRequest | Notification | InvalidRequest:
    """Check one HTTP body, of at most `max_values` JSON values, and its headers (lower-case names).

    With `serves_legacy`, requests of clients that open with `initialize` are valid, too.
    """
    try:
        message = jsonrpc.parse_message(body, max_values)
    except jsonrpc.InvalidEnvelope as failure:
        return InvalidRequest(failure.id, failure)
    if isinstance(message, Notification):
        refusal = _unserved_version(headers, serves_legacy=serves_legacy)
        return message if refusal is None else InvalidRequest(None, refusal)
    session, legacy_version, has_version = None, None, _has_version(message)
    if serves_legacy and not has_version:
        session = _session(message, headers)
        legacy_version = _legacy_version(message, headers, session)
    try:
        if legacy_version is None:
            if not has_version:
                _refuse_legacy(message, headers, serves_legacy=serves_legacy)
            check_headers(message, headers)
            meta = _client_meta(message.params)
            if meta.protocol_version not in constants.SUPPORTED_VERSIONS:
                raise unsupported_version(meta.protocol_version)
        else:
            check_headers(message, headers, required=False)
            meta = _legacy_meta(message.params, legacy_version, session)
    except ProtocolError as failure:
        return InvalidRequest(message.id, failure, is_legacy=legacy_version is not None)
    return ValidRequest(message.id, message.method, message.params, meta)


def _has_version(message: JsonRpcRequest) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and constants.META_PROTOCOL_VERSION in meta


def _session(message: JsonRpcRequest, headers: Mapping[str, str]) -> SessionId | None:
    """Return what the client declared with `initialize`; None without a session id of this package."""
    text = headers.get(constants.HEADER_SESSION_ID)
    if text is None or message.method == constants.INITIALIZE:
        return None
    return SessionId.decode(text)


def _legacy_version(
    message: JsonRpcRequest, headers: Mapping[str, str], session: SessionId | None
) -> str | None:
    """Return the version of a client that opens with `initialize`; None for any other client.

    After `initialize`, the client sends the version in a header (2025-11-25, basic/transports "Protocol
    Version Header"). Without the header, the version is that of the session, or else the latest one.
    """
    if message.method == constants.INITIALIZE:
        return constants.LEGACY_VERSION
    default = constants.LEGACY_VERSION if session is None else session.protocol_version
    version = headers.get(constants.HEADER_PROTOCOL_VERSION, default).strip()
    return version if version in constants.LEGACY_VERSIONS else None


def _refuse_legacy(message: JsonRpcRequest, headers: Mapping[str, str], *, serves_legacy: bool) -> None:
    """Raise -32022 with the supported versions for a client that opens with `initialize`.

    Its user may see nothing else, so -32602 would not help. A client whose header has a supported version is
    a modern one with a malformed `_meta` instead (basic/versioning "Backward Compatibility").
    """
    if message.method == constants.INITIALIZE:
        requested = message.params.get("protocolVersion")
        raise unsupported_version(requested if isinstance(requested, str) else "")
    if (refusal := _unserved_version(headers, serves_legacy=serves_legacy)) is not None:
        raise refusal


def _unserved_version(headers: Mapping[str, str], *, serves_legacy: bool) -> ProtocolError | None:
    """Return -32022 for a header with a version that is not served (2025-11-25, basic/transports)."""
    header = headers.get(constants.HEADER_PROTOCOL_VERSION)
    served = (*constants.SUPPORTED_VERSIONS, *(constants.LEGACY_VERSIONS if serves_legacy else ()))
    if header is None or header.strip() in served:
        return None
    return unsupported_version(header.strip(), served)


def _client_meta(params: Mapping[str, Any]) -> RequestMeta:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        required = f"{constants.META_PROTOCOL_VERSION} and {constants.META_CLIENT_CAPABILITIES}"
        raise jsonrpc.invalid_params(f"_meta must be an object with {required}")
    meta = jsonrpc.without_null_members(meta)
    return RequestMeta(
        protocol_version=_required(meta, constants.META_PROTOCOL_VERSION, str, "a string"),
        capabilities=_required(meta, constants.META_CLIENT_CAPABILITIES, dict, "an object"),
        info=_optional(meta, constants.META_CLIENT_INFO, dict, "an object"),
        progress_token=_progress_token(meta),
        log_level=_log_level(meta),
        trace=_trace(meta),
    )


def _legacy_meta(params: Mapping[str, Any], version: str, session: SessionId | None) -> RequestMeta:
    # Capabilities and log level of the request take precedence over those of the session.
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise jsonrpc.invalid_params("_meta must be an object")
    meta = jsonrpc.without_null_members(meta)
    capabilities = _optional(meta, constants.META_CLIENT_CAPABILITIES, dict, "an object")
    log_level = _log_level(meta)
    if session is not None:
        capabilities = session.capabilities if capabilities is None else capabilities
        log_level = log_level or session.log_level
    return RequestMeta(
        protocol_version=version,
        capabilities=capabilities or {},
        info=None if session is None else session.client_info,
        progress_token=_progress_token(meta),
        log_level=log_level,
        trace=_trace(meta),
        knows_capabilities=capabilities is not None,
        session_nonce=None if session is None else session.nonce,
    )


def _trace(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: meta[name] for name in constants.META_TRACE if name in meta}


def _required(meta: Mapping[str, Any], name: str, kind: Any, expected: str) -> Any:
    if name not in meta:
        raise jsonrpc.invalid_params(f"{name} is required in _meta")
    return _optional(meta, name, kind, expected)


def _optional(meta: Mapping[str, Any], name: str, kind: Any, expected: str) -> Any:
    value = meta.get(name)
    if name in meta and (not isinstance(value, kind) or isinstance(value, bool)):
        raise jsonrpc.invalid_params(f"{name} must be {expected}")
    return value


def _progress_token(meta: Mapping[str, Any]) -> str | int | None:
    if "progressToken" not in meta:
        return None
    token: str | int = meta["progressToken"]
    if not jsonrpc.is_echoable(token):
        raise jsonrpc.invalid_params(f"progressToken must be {jsonrpc.ECHOABLE}")
    return token


def _log_level(meta: Mapping[str, Any]) -> str | None:
    level = _optional(meta, constants.META_LOG_LEVEL, str, "a string")
    if level is not None and level not in constants.LOG_LEVELS:
        raise jsonrpc.invalid_params(
            f"{constants.META_LOG_LEVEL} must be one of {', '.join(constants.LOG_LEVELS)}"
        )
    return level  # type: ignore[no-any-return]  # _optional has checked that it is a string


def unsupported_version(
    requested: str, supported: Sequence[str] = constants.SUPPORTED_VERSIONS
) -> ProtocolError:
    """Return -32022 with the supported versions, by default those of requests with `_meta`."""
    return ProtocolError(
        jsonrpc.UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: use one of {', '.join(supported)}",
        {"supported": list(supported), "requested": requested[:128]},
    )


def unknown_method(method: str) -> ProtocolError:
    """Return -32601; for `initialize`, with the versions that have no such method."""
    if method == constants.INITIALIZE:
        return ProtocolError(
            jsonrpc.METHOD_NOT_FOUND,
            f"The supported protocol versions have no initialize: {', '.join(constants.SUPPORTED_VERSIONS)}",
            {"supported": list(constants.SUPPORTED_VERSIONS)},
        )
    return ProtocolError(jsonrpc.METHOD_NOT_FOUND, "Method not found")
