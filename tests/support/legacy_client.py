"""A legacy client (`initialize`) that validates every response with the models of 2025-11-25."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_types import _v2025_11_25 as models
from pydantic import BaseModel

from mcp_roundtrip import Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip_testing.ports import make_ports

RESULTS: Mapping[str, type[BaseModel]] = {
    "initialize": models.InitializeResult,
    "tools/list": models.ListToolsResult,
    "tools/call": models.CallToolResult,
    "prompts/list": models.ListPromptsResult,
    "prompts/get": models.GetPromptResult,
    "resources/list": models.ListResourcesResult,
    "resources/templates/list": models.ListResourceTemplatesResult,
    "resources/read": models.ReadResourceResult,
    "completion/complete": models.CompleteResult,
}

LATER = {"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}
"""Members of results that legacy versions do not have."""


def assert_valid(method: str, response: Mapping[str, Any]) -> None:
    """Check a response of 2025-11-25."""
    if "error" in response:
        is_url = response["error"]["code"] == -32042
        (models.URLElicitationRequiredError if is_url else models.JSONRPCErrorResponse).model_validate(
            response
        )
        return
    result = models.JSONRPCResultResponse.model_validate(response).model_dump()["result"]
    assert not LATER & result.keys()
    if method in RESULTS:
        RESULTS[method].model_validate(result)


@dataclass
class LegacyClient:
    """A client that sends `version` as MCP-Protocol-Version. Without a `user` it is anonymous."""

    server: Server
    version: str | None = LEGACY_VERSION
    user: str | None = None
    ports: Ports = field(default_factory=make_ports)

    @classmethod
    def of(cls, server: Server, user: str, **given: Any) -> LegacyClient:
        """Return a client that has signed in."""
        ports = make_ports(auth=EventAuthenticator(AuthMode.JWT), **given)
        return cls(server, user=user, ports=ports)

    def send(self, body: Any, *, method: str = "POST", **headers: str) -> HttpResponse:
        version = {} if self.version is None else {"mcp-protocol-version": self.version}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        claims = {} if self.user is None else {"jwt": {"claims": {"iss": "https://id", "sub": self.user}}}
        request = HttpRequest(
            method,
            {"accept": "application/json, text/event-stream", **version, **given},
            body if isinstance(body, str) else json.dumps(body),
            claims,
        )
        return self.server.endpoint.respond(request, self.ports, Invocation("id", 1e18))

    def ask(self, method: str, **params: Any) -> Any:
        """Return the response to a request, which must have HTTP status 200."""
        response = self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert response.status == 200
        read = json.loads(response.body)
        assert_valid(method, read)
        return read

    def result(self, method: str, **params: Any) -> Any:
        return self.ask(method, **params)["result"]

    def error(self, method: str, **params: Any) -> Any:
        return self.ask(method, **params)["error"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that has no argument `tool`, and return its result."""
        return self.result("tools/call", name=tool, arguments=arguments)

    def error_text(self, tool: str, **arguments: Any) -> str:
        """Return the text of a tool error."""
        result = self.call(tool, **arguments)
        assert result["isError"] is True
        return text(result)


def text(result: Mapping[str, Any]) -> str:
    """Return the text of a result."""
    return "\n".join(block["text"] for block in result["content"])
