"""Validate the parts of a request that every MCP request has, before anything reads what it asks for.

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
from dataclasses import dataclass, field
from typing import Any

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol.jsonrpc import (
    ECHOABLE,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    InvalidEnvelope,
    Notification,
    Request,
    RequestId,
    is_echoable,
    read,
)
from mcp_roundtrip.protocol.methods import (
    HEADER_PROTOCOL_VERSION,
    LEGACY_VERSION,
    LEGACY_VERSIONS,
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    META_TRACE,
    SUPPORTED_VERSIONS,
)
from mcp_roundtrip.protocol.mirrored_headers import check_headers, check_sent_headers


@dataclass(frozen=True, slots=True)
class ClientMeta:
    """What the client says about itself and this request in `_meta`.

    `info` is self-reported and serves display and logs alone.
    """

    protocol_version: str
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any] | None = None
    progress_token: str | int | None = None
    log_level: str | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)
    """Trace context as it was sent (`protocol.trace` reads it)."""


@dataclass(frozen=True, slots=True)
class ValidRequest:
    """A request that passed the ladder."""

    id: RequestId
    method: str
    params: Mapping[str, Any]
    meta: ClientMeta

    @property
    def is_legacy(self) -> bool:
        """Whether it is of the `initialize` era."""
        return self.meta.protocol_version in LEGACY_VERSIONS


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """The first rung that failed; `id` is None where the request's id could not be read."""

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
    """Check one HTTP body and its headers, whose names are in lower case.

    With `serves_legacy`, a request of a client that opens with `initialize` is valid too, with one of
    LEGACY_VERSIONS. A body with more than `max_values` JSON values is invalid.
    """
    try:
        message = read(body, max_values)
    except InvalidEnvelope as failure:
        return InvalidRequest(failure.id, failure)
    if isinstance(message, Notification):
        return message
    legacy_version = _legacy_version(message, headers) if serves_legacy else None
    try:
        if legacy_version is None:
            _refuse_legacy(message, headers, serves_legacy=serves_legacy)
            check_headers(message, headers)
            meta = _client_meta(message.params)
            _check_version(meta.protocol_version)
        else:
            check_sent_headers(message, headers)
            meta = _legacy_meta(message.params, legacy_version)
    except ProtocolError as failure:
        return InvalidRequest(message.id, failure, is_legacy=legacy_version is not None)
    return ValidRequest(message.id, message.method, message.params, meta)


def _has_version(message: Request) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and META_PROTOCOL_VERSION in meta


def _legacy_version(message: Request, headers: Mapping[str, str]) -> str | None:
    """The version of a request of the `initialize` era that may be served; None for every other request.

    Its clients name their version in a header once `initialize` has agreed on one (2025-11-25,
    basic/transports "Protocol Version Header"); a request without is taken for one of the latest.
    """
    if _has_version(message):
        return None
    version = headers.get(HEADER_PROTOCOL_VERSION, LEGACY_VERSION).strip()
    return version if version in LEGACY_VERSIONS else None


def _refuse_legacy(message: Request, headers: Mapping[str, str], *, serves_legacy: bool) -> None:
    """Raise -32022 for a client of the `initialize` era, with the versions that it can choose from.

    The error may be all its user gets to see.

    Such a client sends no version in `_meta`; a header that names a supported version shows a modern client
    whose `_meta` is malformed instead (basic/versioning "Backward Compatibility").
    """
    if _has_version(message):
        return
    if message.method == "initialize":
        requested = message.params.get("protocolVersion")
        raise unsupported_version(requested if isinstance(requested, str) else "")
    header = headers.get(HEADER_PROTOCOL_VERSION)
    if header is not None and header.strip() not in SUPPORTED_VERSIONS:
        legacy_versions = LEGACY_VERSIONS if serves_legacy else ()
        raise unsupported_version(header.strip(), (*SUPPORTED_VERSIONS, *legacy_versions))


def _client_meta(params: Mapping[str, Any]) -> ClientMeta:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        required = f"{META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
        raise _invalid("_meta", f"must be an object with {required}")
    return ClientMeta(
        protocol_version=_member(meta, META_PROTOCOL_VERSION, str, "a string"),
        capabilities=_member(meta, META_CLIENT_CAPABILITIES, dict, "an object"),
        info=_optional(meta, META_CLIENT_INFO, dict, "an object"),
        progress_token=_progress_token(meta),
        log_level=_log_level(meta),
        trace=_trace(meta),
    )


def _legacy_meta(params: Mapping[str, Any], version: str) -> ClientMeta:
    """Its `_meta` has a progress token at most, but a client may say what it can do as later ones do."""
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise _invalid("_meta", "must be an object")
    return ClientMeta(
        protocol_version=version,
        capabilities=_optional(meta, META_CLIENT_CAPABILITIES, dict, "an object") or {},
        progress_token=_progress_token(meta),
        trace=_trace(meta),
    )


def _trace(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: meta[name] for name in META_TRACE if name in meta}


def _member(meta: dict[str, Any], name: str, kind: Any, said: str) -> Any:
    if name not in meta:
        raise _invalid(name, "is required in _meta")
    return _optional(meta, name, kind, said)


def _optional(meta: dict[str, Any], name: str, kind: Any, said: str) -> Any:
    value = meta.get(name)
    if name in meta and (not isinstance(value, kind) or isinstance(value, bool)):
        raise _invalid(name, f"must be {said}")
    return value


def _progress_token(meta: Mapping[str, Any]) -> str | int | None:
    """It is in every notification, so it is no longer than an id."""
    if "progressToken" not in meta:
        return None
    token: str | int = meta["progressToken"]
    if not is_echoable(token):
        raise _invalid("progressToken", f"must be {ECHOABLE}")
    return token


def _log_level(meta: dict[str, Any]) -> str | None:
    level = _optional(meta, META_LOG_LEVEL, str, "a string")
    if level is not None and level not in LOG_LEVELS:
        raise _invalid(META_LOG_LEVEL, f"must be one of {', '.join(LOG_LEVELS)}")
    return level  # type: ignore[no-any-return]  # _optional has checked that it is a string


def _check_version(version: str) -> None:
    if version not in SUPPORTED_VERSIONS:
        raise unsupported_version(version)


def _invalid(member: str, problem: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"Invalid params: {member} {problem}")


def unsupported_version(requested: str, supported: Sequence[str] = SUPPORTED_VERSIONS) -> ProtocolError:
    """-32022 with the supported versions.

    By default those that a request can name in `_meta`: no request does that in the `initialize` era.
    """
    return ProtocolError(
        UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: use one of {', '.join(supported)}",
        {"supported": list(supported), "requested": requested[:128]},
    )


def unknown_method(method: str) -> ProtocolError:
    """-32601; an `initialize` also learns which versions need none."""
    if method == "initialize":
        return ProtocolError(
            METHOD_NOT_FOUND,
            f"There is no initialize in the versions this server speaks: {', '.join(SUPPORTED_VERSIONS)}",
            {"supported": list(SUPPORTED_VERSIONS)},
        )
    return ProtocolError(METHOD_NOT_FOUND, "Method not found")
