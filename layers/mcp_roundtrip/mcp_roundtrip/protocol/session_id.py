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
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.protocol.canonical import compact_json, parse_json
from mcp_roundtrip.protocol.capabilities import is_empty
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

_KNOWN_CAPABILITIES: Final = ("elicitation", "sampling", "roots", "tasks", "extensions")
_KNOWN_EXTENSIONS: Final = (UI_EXTENSION, TASKS_EXTENSION)
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]+")
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{22}")


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
        """Create the id of a new session from the params of `initialize` and `NONCE_BYTES` random bytes."""
        nonce = urlsafe_b64encode(random).rstrip(b"=").decode()
        name, client_version = (_text(info.get(member)) for member in ("name", "version"))
        return cls(
            version, name[:MAX_NAME], client_version[:MAX_VERSION], capabilities, nonce, log_level
        ).within_limit()

    @property
    def client_info(self) -> dict[str, str]:
        """The client's Implementation object."""
        return {"name": self.client_name, "version": self.client_version}

    def within_limit(self) -> SessionId:
        """Return an id of at most `MAX_LENGTH` characters.

        It drops unknown extensions first, then other unknown capabilities, then the details of known ones.
        """
        for capabilities in _reductions(self.capabilities):
            reduced = SessionId(
                self.version, self.client_name, self.client_version, capabilities, self.nonce, self.log_level
            )
            if len(reduced.encode()) <= MAX_LENGTH:
                return reduced
        raise AssertionError("the skeleton of the known capabilities fits")

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
        if len(text) > MAX_LENGTH or not _BASE64.fullmatch(text):
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
            } if version in LEGACY_VERSIONS and _NONCE.fullmatch(nonce):
                level = members.get("logLevel")
                if level is None or level in LOG_LEVELS:
                    return cls(version, name, client_version, capabilities, nonce, level)
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _reductions(capabilities: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the capabilities, then with less and less of what this server reads."""
    yield capabilities
    extensions = _members(capabilities.get("extensions"), _KNOWN_EXTENSIONS)
    yield {**capabilities, "extensions": extensions}
    known = {**_members(capabilities, _KNOWN_CAPABILITIES), "extensions": extensions}
    yield known
    yield _skeleton(known)


def _members(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value} if isinstance(value, Mapping) else {}


def _skeleton(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that `declares` can find among the known capabilities, without further content."""
    skeleton: dict[str, Any] = {}
    for name, modes in (("elicitation", ("form", "url")), ("sampling", ("context", "tools"))):
        value = capabilities.get(name)
        declared = _empty_objects(value, modes)
        # An empty `elicitation` declares forms, so one with unknown members only must not become empty.
        if isinstance(value, Mapping) and (declared or is_empty(value) or name != "elicitation"):
            skeleton[name] = declared
    skeleton |= _empty_objects(capabilities, ("roots", "tasks"))
    extensions = capabilities["extensions"]
    skeleton["extensions"] = _empty_objects(extensions, (TASKS_EXTENSION,)) | _ui_skeleton(extensions)
    return skeleton


def _empty_objects(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {} for name, member in _members(value, names).items() if isinstance(member, Mapping)}


def _ui_skeleton(extensions: Mapping[str, Any]) -> dict[str, Any]:
    ui = extensions.get(UI_EXTENSION)
    if not isinstance(ui, Mapping):
        return {}
    skeleton = _empty_objects(ui, ("elicitation",))
    if (types := ui.get("mimeTypes")) is not None:
        supported = isinstance(types, list) and UI_MIME_TYPE in types
        skeleton["mimeTypes"] = [UI_MIME_TYPE] if supported else []
    return {UI_EXTENSION: skeleton}
