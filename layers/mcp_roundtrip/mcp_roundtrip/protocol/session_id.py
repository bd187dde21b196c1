"""Session ids that hold what a client declared with `initialize`, so that the server need not store it.

A client of the earlier versions declares its capabilities once and then repeats the `Mcp-Session-Id` that the
server chose, which may be any visible ASCII text (2025-11-25, basic/transports "Session Management"). These
ids are the URL-safe Base64 of compact JSON::

    {"protocolVersion": "2025-11-25", "client": ["name", "1.0"], "capabilities": {...}, "nonce": "..."}

They contain claims of the client itself, as `_meta` does in 2026-07-28, so they need no signature. They do
not authenticate: a client can invent one, and every caller who knows one can send it.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.protocol.canonical import compact_json, parse_json
from mcp_roundtrip.protocol.capabilities import is_empty, shows_apps
from mcp_roundtrip.protocol.constants import (
    LEGACY_VERSIONS,
    LOG_LEVELS,
    TASKS_EXTENSION,
    UI_EXTENSION,
    UI_MIME_TYPE,
)

MAX_LENGTH: Final = 2_048
"""Characters of a session id. API Gateway allows 10,240 bytes for all headers of a request."""

NONCE_BYTES: Final = 16

MAX_NAME: Final = 64
"""Characters of the client's name that are kept."""

MAX_VERSION: Final = 32
"""Characters of the client's version that are kept."""

_KNOWN: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"context": {}, "tools": {}},
    "roots": {},
    "tasks": {},
    "extensions": {TASKS_EXTENSION: {}, UI_EXTENSION: {"elicitation": {}}},
}
"""The capabilities that this package knows."""

_BASE64: Final = r"[A-Za-z0-9_-]+"
_NONCE: Final = r"[A-Za-z0-9_-]{22}"


class SessionId(Struct, frozen=True):
    """The claims of a client in its session id.

    `version`: the protocol version that `initialize` agreed on.
    `nonce`: 128 random bits that differ in each session, in URL-safe Base64.
    `log_level`: the minimum level of log messages, if the client named one in the `_meta` of `initialize`.
    """

    version: str
    client_name: str
    client_version: str
    capabilities: Mapping[str, Any]
    nonce: str
    log_level: str | None = None

    @classmethod
    def create(
        cls,
        version: str,
        info: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        random: bytes,
        log_level: str | None = None,
    ) -> SessionId:
        """Create the id of a new session from the params of `initialize` and `NONCE_BYTES` random bytes.

        An id that would be too long has only the capabilities that this package knows, without their details.
        """
        nonce = urlsafe_b64encode(random).rstrip(b"=").decode()
        name, client_version = _text(info, "name", MAX_NAME), _text(info, "version", MAX_VERSION)
        whole = cls(version, name, client_version, capabilities, nonce, log_level)
        fits = len(whole.encode()) <= MAX_LENGTH
        return whole if fits else replace(whole, capabilities=_known(capabilities))

    @property
    def client_info(self) -> dict[str, str]:
        """The client's Implementation object."""
        return {"name": self.client_name, "version": self.client_version}

    def encode(self) -> str:
        """Return the value of the header `Mcp-Session-Id`."""
        members: dict[str, Any] = {
            "protocolVersion": self.version,
            "client": [self.client_name, self.client_version],
            "capabilities": self.capabilities,
            "nonce": self.nonce,
        }
        if self.log_level is not None:
            members["logLevel"] = self.log_level
        return urlsafe_b64encode(compact_json(members).encode("ascii")).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> SessionId | None:
        """Return the content of an id that `encode` wrote; None for any other text."""
        if len(text) > MAX_LENGTH or not re.fullmatch(_BASE64, text):
            return None
        try:
            members = parse_json(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except ValueError:
            return None
        session_id = cls._read(members)
        # Each id has one spelling: this refuses other JSON, other Base64 and further members.
        return session_id if session_id is not None and session_id.encode() == text else None

    @classmethod
    def _read(cls, members: Any) -> SessionId | None:
        match members:
            case {
                "protocolVersion": str(version),
                "client": [str(name), str(client_version)],
                "capabilities": dict(capabilities),
                "nonce": str(nonce),
            } if version in LEGACY_VERSIONS and re.fullmatch(_NONCE, nonce):
                level = members.get("logLevel")
                if level is None or level in LOG_LEVELS:
                    return cls(version, name, client_version, capabilities, nonce, level)
        return None


def _text(info: Mapping[str, Any], name: str, length: int) -> str:
    value = info.get(name)
    return value[:length] if isinstance(value, str) else ""


def _known(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that `declares` can find, without further content."""
    known = _members(capabilities, _KNOWN)
    # An empty `elicitation` declares forms, so one with unknown members only must not become empty.
    if known.get("elicitation") == {} and not is_empty(capabilities["elicitation"]):
        del known["elicitation"]
    ui = known.get("extensions", {}).get(UI_EXTENSION)
    if ui is not None and capabilities["extensions"][UI_EXTENSION].get("mimeTypes") is not None:
        ui["mimeTypes"] = [UI_MIME_TYPE] if shows_apps(capabilities) else []
    return known


def _members(value: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _members(value[name], inner)
        for name, inner in known.items()
        if isinstance(value.get(name), Mapping)
    }
