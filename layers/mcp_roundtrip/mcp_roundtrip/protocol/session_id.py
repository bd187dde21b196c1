"""Session ids that hold what a client declared with `initialize`, so that the server need not store it.

A client of the earlier versions declares its capabilities once and then repeats the `Mcp-Session-Id` that the
server chose, which may be any visible ASCII text (2025-11-25, basic/transports "Session Management"). An id
is the URL-safe Base64 of compact JSON::

    {"protocolVersion": "2025-11-25", "client": ["name", "1.0"], "capabilities": {...}, "nonce": "..."}

These are claims of the client itself, as in the `_meta` of 2026-07-28, so no signature is needed. An id does
not authenticate: a client can invent one, and every caller who knows one can send it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, LOG_LEVELS
from mcp_roundtrip.protocol.strict_json import compact_json, parse_json

MAX_LENGTH: Final = 4_096
"""Characters of a session id. API Gateway allows 10,240 bytes for all headers of a request."""

NONCE_BYTES: Final = 16

MAX_NAME: Final = 64
MAX_VERSION: Final = 32
"""Characters of the client's name and version that are kept."""


class SessionId(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The claims of a client in its session id.

    `protocol_version` is the one that `initialize` agreed on, `client` the client's name and version, `nonce`
    128 random bits of the session in URL-safe Base64, and `log_level` the minimum level of log messages that
    the `_meta` of `initialize` named.
    """

    protocol_version: str
    client: tuple[str, str]
    capabilities: dict[str, Any]
    nonce: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{22}\Z")]
    log_level: str | None = None

    @classmethod
    def create(
        cls,
        version: str,
        info: Mapping[str, Any],
        capabilities: dict[str, Any],
        random: bytes,
        log_level: str | None = None,
    ) -> SessionId:
        """Create the id of a new session from the params of `initialize` and `NONCE_BYTES` random bytes."""
        client = _text(info, "name", MAX_NAME), _text(info, "version", MAX_VERSION)
        return cls(version, client, capabilities, urlsafe_b64encode(random).rstrip(b"=").decode(), log_level)

    @property
    def client_info(self) -> dict[str, str]:
        name, version = self.client
        return {"name": name, "version": version}

    def encode(self) -> str | None:
        """Return the value of the header `Mcp-Session-Id`; None if it would be too long."""
        text = urlsafe_b64encode(compact_json(to_builtins(self)).encode("ascii")).rstrip(b"=").decode()
        return text if len(text) <= MAX_LENGTH else None

    @classmethod
    def decode(cls, text: str) -> SessionId | None:
        """Return the content of an id that `encode` wrote; None for any other text."""
        try:
            session_id = convert(parse_json(urlsafe_b64decode(text + "=" * (-len(text) % 4))), cls)
        except (ValidationError, ValueError):
            return None
        if session_id.protocol_version not in LEGACY_VERSIONS:
            return None
        if session_id.log_level is not None and session_id.log_level not in LOG_LEVELS:
            return None
        # Each id has one spelling: this refuses other JSON, other Base64, further members and longer ids.
        return session_id if session_id.encode() == text else None


def _text(info: Mapping[str, Any], name: str, length: int) -> str:
    value = info.get(name)
    return value[:length] if isinstance(value, str) else ""
