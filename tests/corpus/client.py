"""A client of a function: it sends what a client of its kind sends, and reads the responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from corpus.callers import access_token, described, event_of, settings_of
from corpus.client_kinds import KINDS, Kind
from corpus.deployment import STACK, Function, MakeServer, World
from mcp_roundtrip.protocol.constants import NAME_PARAMETER
from mcp_roundtrip_testing.http_requests import read_messages
from support.event_sources import response_of

META = "io.modelcontextprotocol/"


@dataclass
class Client:
    """A client that sends its requests to a function."""

    world: World
    function: Function
    kind: Kind
    mode: str
    source: str
    person: str | None
    meta: Mapping[str, Any]
    path: str = "/mcp"
    session: str | None = None
    _ids: Any = field(default_factory=lambda: count(1))

    def another(self, **changes: Any) -> Client:
        return replace(self, **changes)

    def restart(self) -> None:
        """Reach the function in a new execution environment."""
        self.function = self.function.another_environment()

    def open(self) -> None:
        if not self.kind.is_legacy:
            return
        params = {
            "protocolVersion": self.kind.version,
            "capabilities": self.kind.capabilities,
            "clientInfo": self.kind.info,
        }
        response = response_of(self.post("initialize", params, {}))
        self.session = response.headers.get("mcp-session-id") if self.kind.keeps_session else None

    def request(self, method: str, params: Mapping[str, Any], **changes: str | None) -> dict[str, Any]:
        """Send a request, and return the JSON-RPC response; empty if there is none."""
        return read_message(self.post(method, self._params(params), self._headers(method, params, **changes)))

    def post(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        return self.send(body, headers)

    def send(self, body: Any, headers: Mapping[str, str] | None = None, method: str = "POST") -> Any:
        """Send any body: a text as it is, everything else as JSON."""
        if self.source == "direct":
            return self.function.request(body, {"direct": body})
        text = body if isinstance(body, str) or body is None else json.dumps(body, ensure_ascii=False)
        return self.http(method, self.path, headers or {}, text)

    def http(self, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> Any:
        given = dict(headers)
        if self.mode == "bearer" and self.person is not None:
            given.setdefault("authorization", f"Bearer {access_token(self.world, self.person)}")
        event = event_of(self.source, self.mode, self.person, method, path, given, body)
        shown = described(method, path, given, body)
        who = {} if self.person is None or self.mode in ("none", "bearer") else {"caller": self.person}
        return self.function.request(event, {"source": self.source, **who, **shown})

    def page(self, url: str, method: str = "GET", body: str | None = None, **headers: str) -> Any:
        """Send a request to a page, or its form, as the browser of a user does, who sends no credentials."""
        path = url.removeprefix("https://mcp.example.com")
        given = {"content-type": "application/x-www-form-urlencoded"} if body is not None else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        path = path if body is None else path.partition("?")[0]
        return self.another(person=None).http(method, path, given, body)

    def _params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self.kind.is_legacy:
            given = params.get("_meta", {}) | self.meta
            return {**params, **({"_meta": given} if given else {})}
        meta = {
            f"{META}protocolVersion": self.kind.version,
            f"{META}clientInfo": self.kind.info,
            f"{META}clientCapabilities": self.kind.capabilities,
        }
        return {**params, "_meta": {**meta, **self.meta}}

    def _headers(self, method: str, params: Mapping[str, Any], **changes: str | None) -> dict[str, str]:
        headers: dict[str, str | None] = {"mcp-protocol-version": self.kind.version}
        if self.kind.is_legacy:
            headers["mcp-session-id"] = self.session
        else:
            headers["mcp-method"] = method
            headers["mcp-name"] = params.get(NAME_PARAMETER.get(method, ""))
        headers |= {name.replace("_", "-"): value for name, value in changes.items()}
        return {name: value for name, value in headers.items() if value is not None}


def deployed(
    world: World,
    make: MakeServer,
    name: str = f"{STACK}_play",
    *,
    client: str = "shows forms and URLs",
    mode: str = "none",
    source: str = "http_api",
    person: str | None = "alice",
    settings: Mapping[str, str] | None = None,
    meta: Mapping[str, Any] | None = None,
    opens: bool = True,
) -> Client:
    """Deploy a function, and return a client of this kind, which has sent its first request if it `opens`."""
    function = world.function(make, name, **{**settings_of(mode, world), **(settings or {})})
    caller = None if mode == "none" else person
    found = Client(world, function, KINDS[client], mode, source, caller, meta or {})
    if opens:
        found.open()
    return found


def read_message(response: Any) -> dict[str, Any]:
    """Return the JSON-RPC response in what a function returned; empty if there is none."""
    if not isinstance(response, dict) or "statusCode" not in response:
        return response or {}
    try:
        return dict(read_messages(response_of(response))[-1])
    except ValueError:
        return {}
