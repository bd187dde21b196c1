"""A client that shows MCP Apps and answers no input requests, directly or through a front door."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.http import HttpRequest
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import (
    LEGACY_VERSION,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    UI_EXTENSION,
    UI_MIME_TYPE,
)
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip_local.catalog import catalog_lists, merged_scopes
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from support import token_issuer
from support.messages import headers

APPS: Mapping[str, Any] = {"extensions": {UI_EXTENSION: {"mimeTypes": [UI_MIME_TYPE]}}}

QUESTIONS = "mcp-roundtrip/questions"

AUTHORIZERS: Mapping[AuthMode, Any] = {
    AuthMode.NONE: lambda user: {},
    AuthMode.JWT: lambda user: {"jwt": {"claims": {"iss": "https://id", "sub": user}}},
    AuthMode.LAMBDA: lambda user: {"lambda": {"user": user}},
    AuthMode.BEARER: lambda user: {},
    AuthMode.IAM: lambda user: {"iam": {"userId": f"AROA{user}:session", "accountId": "123456789012"}},
}
"""Returns the authorizer context of a user. Bearer tokens are in a header."""


def app_ports(mode: AuthMode = AuthMode.JWT, **given: Any) -> Ports:
    """Return ports for callers who are identified in this way."""
    clock = given.setdefault("clock", FakeClock())
    bearer = mode is AuthMode.BEARER
    auth = token_issuer.authenticator(clock) if bearer else EventAuthenticator(mode, "user", "scopes")
    return make_ports(auth=auth, **given)


@dataclass
class AppClient:
    """Sends requests as `user`.

    `version` decides whether it opens with `initialize`. A request may take `round_ms` milliseconds.
    """

    server: Server
    version: str = PROTOCOL_VERSION
    user: str = "alice"
    mode: AuthMode = AuthMode.JWT
    ports: Ports | None = None
    capabilities: Mapping[str, Any] = field(default_factory=lambda: APPS)
    through_door: bool = False
    scopes: tuple[str, ...] = ()
    round_ms: float = 1e18
    _session: str | None = None

    def __post_init__(self) -> None:
        self.ports = self.ports or app_ports(self.mode)
        self._endpoint = self._door().endpoint if self.through_door else self.server.endpoint

    def _door(self) -> FrontDoor:
        with TemporaryDirectory() as folder:
            path = Path(folder, "catalog.json")
            servers = {"owner": self.server}
            path.write_text(json.dumps({"scopes": merged_scopes(servers), **catalog_lists(servers)}))
            return FrontDoor("door", path)

    def as_user(self, user: str) -> AppClient:
        """Return another user's client of the same deployment."""
        return replace(self, user=user, _session=None)

    def send(self, method: str, params: Mapping[str, Any], **changes: str | None) -> Any:
        """Return the response. `changes` replace headers, or remove them with None."""
        if self.version == PROTOCOL_VERSION:
            meta = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: self.capabilities}
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
            return self._post(body, headers(body, **changes))
        if self._session is None:
            info = {"name": "host", "version": "1"}
            opening = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": info}
            body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
            self._session = self._raw(body, {}).headers["mcp-session-id"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        given = {"mcp-protocol-version": self.version, "mcp-session-id": self._session}
        return self._post(body, given)

    def _post(self, body: Mapping[str, Any], given: Mapping[str, str]) -> Any:
        return json.loads(self._raw(body, given).body)

    def _raw(self, body: Mapping[str, Any], given: Mapping[str, str]) -> Any:
        assert self.ports is not None

        ports = self.ports
        deadline_ms = ports.clock_ms() + self.round_ms
        authorizer = AUTHORIZERS[self.mode](self.user)
        if self.mode is AuthMode.JWT:
            authorizer["jwt"]["scopes"] = list(self.scopes) or None
            authorizer["jwt"]["claims"]["scope"] = " ".join(self.scopes)
        accepted = {"accept": "application/json, text/event-stream", **given}
        if self.mode is AuthMode.BEARER:
            token = token_issuer.ONE.sign(token_issuer.claims(ports.clock(), sub=self.user))
            accepted["authorization"] = f"Bearer {token}"
        request = HttpRequest("POST", accepted, json.dumps(body), authorizer)

        def forward(owner: str, event: Any, custom: Any, timeout_s: int) -> Any:
            return self.server.endpoint.respond(request, ports, Invocation("id", deadline_ms))

        response = self._endpoint.respond(
            request, structs.replace(ports, forward=forward), Invocation("id", deadline_ms, event={})
        )
        return response.raw if response.raw is not None else response

    def result(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        response = self.send(method, params)
        assert "result" in response, response
        return response["result"]

    def error(self, method: str, **params: Any) -> Any:
        """Return the error of a request."""
        response = self.send(method, params)
        assert "error" in response, response
        return response["error"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the result of a tool."""
        return self.result("tools/call", name=tool, arguments=arguments)

    def answer(self, asked: Mapping[str, Any], /, **answers: Any) -> Any:
        """Answer a result that asks, as the view does: a value is the content of a form."""
        return self.result(
            "tools/call", name="answer_questions", arguments=answer_arguments(asked, **answers)
        )


def answer_arguments(asked: Mapping[str, Any], /, **answers: Any) -> dict[str, Any]:
    """Return the arguments of the answer tool for a result that asks."""
    questions = asked["_meta"][QUESTIONS]
    given = {
        key: answer if "action" in answer else {"action": "accept", "content": answer}
        for key, answer in answers.items()
    }
    return {**{name: questions[name] for name in ("tool", "arguments", "state")}, "answers": given}


def status(result: Mapping[str, Any]) -> str | None:
    """Return where the call stands, as the view reads it."""
    read: str | None = result["_meta"].get(QUESTIONS, {}).get("status")
    return read


def text(result: Mapping[str, Any]) -> str:
    """Return the text of a result."""
    return "\n".join(block["text"] for block in result["content"])


LEGACY = LEGACY_VERSION
