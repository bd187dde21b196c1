"""The ladder: what a request must get right before anything looks at what it asks for.

Pure; the first rung that fails wins, and `classify` says so with a `Rejection`. The rungs, in order: one
JSON-RPC message, headers that agree with it, `_meta` with its two required fields, a supported version.
Rungs that need to know the server (method, name, a tool's own needs) follow in `server.dispatch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol import headers as mirrored
from mcp_roundtrip.protocol.jsonrpc import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    InvalidEnvelope,
    Notification,
    Request,
    RequestId,
    read,
)
from mcp_roundtrip.protocol.methods import (
    HEADER_PROTOCOL_VERSION,
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    SUPPORTED_VERSIONS,
)


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


@dataclass(frozen=True, slots=True)
class Route:
    """A request that passed the ladder."""

    id: RequestId
    method: str
    params: Mapping[str, Any]
    meta: ClientMeta


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first rung that failed; `id` is None where the request's id could not be read."""

    id: RequestId | None
    failure: ProtocolError


def classify(headers: Mapping[str, str], body: str | bytes) -> Route | Notification | Rejection:
    """Run the ladder over one HTTP body. `headers` has lower-case names."""
    try:
        message = read(body)
    except InvalidEnvelope as failure:
        return Rejection(failure.id, failure)
    if isinstance(message, Notification):
        return message
    try:
        _refuse_legacy(message, headers)
        mirrored.check(message, headers)
        meta = _client_meta(message.params)
        _check_version(meta.protocol_version)
    except ProtocolError as failure:
        return Rejection(message.id, failure)
    return Route(message.id, message.method, message.params, meta)


def _refuse_legacy(message: Request, headers: Mapping[str, str]) -> None:
    """Tell a client of the `initialize` era which versions exist here: it may be all its user gets to see.

    Such a client sends no version in `_meta`; a header that names a supported version shows a modern client
    whose `_meta` is malformed instead (basic/versioning "Backward Compatibility").
    """
    meta = message.params.get("_meta")
    if isinstance(meta, dict) and META_PROTOCOL_VERSION in meta:
        return
    if message.method == "initialize":
        requested = message.params.get("protocolVersion")
        raise unsupported_version(requested if isinstance(requested, str) else "")
    header = headers.get(HEADER_PROTOCOL_VERSION)
    if header is not None and header.strip() not in SUPPORTED_VERSIONS:
        raise unsupported_version(header.strip())


def _client_meta(params: Mapping[str, Any]) -> ClientMeta:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        required = f"{META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
        raise _invalid("_meta", f"must be an object with {required}")
    return ClientMeta(
        protocol_version=_member(meta, META_PROTOCOL_VERSION, str, "a string"),
        capabilities=_member(meta, META_CLIENT_CAPABILITIES, dict, "an object"),
        info=_optional(meta, META_CLIENT_INFO, dict, "an object"),
        progress_token=_optional(meta, "progressToken", (str, int), "a string or an integer"),
        log_level=_log_level(meta),
    )


def _member(meta: dict[str, Any], name: str, kind: Any, said: str) -> Any:
    if name not in meta:
        raise _invalid(name, "is required in _meta")
    return _optional(meta, name, kind, said)


def _optional(meta: dict[str, Any], name: str, kind: Any, said: str) -> Any:
    value = meta.get(name)
    if name in meta and (not isinstance(value, kind) or isinstance(value, bool)):
        raise _invalid(name, f"must be {said}")
    return value


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


_SUPPORTED_TEXT: Final = ", ".join(SUPPORTED_VERSIONS)


def unsupported_version(requested: str) -> ProtocolError:
    """-32022, naming the versions this server speaks."""
    return ProtocolError(
        UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: this server speaks {_SUPPORTED_TEXT}",
        {"supported": list(SUPPORTED_VERSIONS), "requested": requested[:128]},
    )


def unknown_method(method: str) -> ProtocolError:
    """-32601; an `initialize` also learns which versions need none."""
    if method == "initialize":
        return ProtocolError(
            METHOD_NOT_FOUND,
            f"There is no initialize in the versions this server speaks: {_SUPPORTED_TEXT}",
            {"supported": list(SUPPORTED_VERSIONS)},
        )
    return ProtocolError(METHOD_NOT_FOUND, "Method not found")
