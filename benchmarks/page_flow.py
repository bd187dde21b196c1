"""Play a client that cannot be asked, and its user, who answers on the question page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from measure import BenchmarkError

VERSION = "2025-11-25"
"""A version whose clients have sessions. An anonymous caller without one cannot be parked."""

FIELD = re.compile(r'<input type="(hidden|radio)" name="([^"]+)" value="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Session:
    """A client's session at the endpoint `url`."""

    url: str
    headers: Mapping[str, str]

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool, and return its result."""
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        _, text = _post(self.url, body, self.headers)
        result: dict[str, Any] = json.loads(text)["result"]
        return result


def open_session(url: str) -> Session:
    opening = {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    headers, _ = _post(url, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}, {})
    return Session(url, {"mcp-protocol-version": VERSION, "mcp-session-id": headers["mcp-session-id"]})


def answer_on_page(session: Session, name: str, arguments: Mapping[str, Any]) -> None:
    """Call a tool, answer its question on the page, and call it again. Raise BenchmarkError."""
    asked = session.call(name, arguments)
    link = asked["_meta"]["mcp-roundtrip/parkedCall"]["url"]
    page = _open(Request(link))
    hidden = {field: value for kind, field, value in FIELD.findall(page) if kind == "hidden"}
    choice = next({field: value} for kind, field, value in FIELD.findall(page) if kind == "radio")
    form = urlencode({**hidden, **choice, "action": "accept"})
    _open(Request(link.partition("?")[0], form.encode()))  # follows the redirect, as a browser does
    result = session.call(name, arguments)
    if "structuredContent" not in result:
        raise BenchmarkError(f"the call did not end after its answer: {result}")


def _post(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[Mapping[str, str], str]:
    common = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with urlopen(Request(url, json.dumps(body).encode(), {**common, **headers})) as response:
        return response.headers, response.read().decode()


def _open(request: Request) -> str:
    with urlopen(request) as response:
        text: str = response.read().decode()
        return text
