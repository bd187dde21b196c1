"""What a client declared with `initialize` reaches its later requests, though nothing is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.protocol.session_id import SessionId
from mcp_roundtrip_local.sample_events.messages import post
from mcp_roundtrip_local.sample_events.sources import FORMATS
from mcp_roundtrip_testing.ports import make_ports
from support.event_sources import HTTP_SOURCES
from support.legacy_client import LegacyClient, text

UI = "io.modelcontextprotocol/ui"
URLS: dict[str, Any] = {"elicitation": {"url": {}}}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}

server = Server("sessions")


@server.tool
def describe_client(ctx: Context) -> dict[str, Any]:
    """Return what the tool can know about the client."""
    ctx.log("info", "described")
    urls, apps = ctx.supports("elicitation.url"), ctx.supports(f"extensions.{UI}")
    return {"client": dict(ctx.client or {}), "urls": urls, "apps": apps}


@server.tool
def sign_in(ctx: Context) -> str:
    """Send the user to a page."""
    ctx.elicit_url("page", "Sign in", "https://x.test/", done=lambda: False)
    return "signed in"


def initialize(
    client: LegacyClient, capabilities: dict[str, Any], version: str = "2025-11-25", **members: Any
) -> HttpResponse:
    info = {"name": "claude-ai", "version": "2.0", "title": "Claude"}
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info, **members}
    response = client.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    assert response.status == 200
    return response


def session(capabilities: dict[str, Any], version: str = "2025-11-25", **members: Any) -> str:
    """The id of a session in which the client declared this."""
    client = LegacyClient(server, version=None)
    return initialize(client, capabilities, version, **members).headers["mcp-session-id"]


def call(
    tool: str, session_id: str | None, *, version: str | None = "2025-11-25", **meta: Any
) -> tuple[HttpResponse, Any]:
    params = {"name": tool, "arguments": {}, **({"_meta": meta} if meta else {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {} if session_id is None else {"mcp_session_id": session_id}
    response = LegacyClient(server, version).send(body, **headers)
    lines = [line[6:] for line in response.body.splitlines() if line.startswith("data: ")]
    return response, json.loads(lines[-1] if lines else response.body)


def described(session_id: str | None, **given: Any) -> Any:
    response, message = call("describe_client", session_id, **given)
    assert response.status == 200
    return json.loads(text(message["result"]))


def test_initialize_begins_a_session_and_no_other_response_has_one() -> None:
    client = LegacyClient(server)
    first, second = (initialize(client, FORMS).headers["mcp-session-id"] for _ in range(2))
    read = SessionId.decode(first)
    assert read is not None
    assert (read.version, read.client_info) == ("2025-11-25", {"name": "claude-ai", "version": "2.0"})
    assert read.capabilities == FORMS
    assert first != second, "the nonce differs"
    response, _ = call("describe_client", first)
    assert "mcp-session-id" not in response.headers


def test_a_tool_knows_the_client_and_its_capabilities() -> None:
    apps = {"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    info = {"name": "claude-ai", "version": "2.0"}
    assert described(session(apps)) == {"client": info, "urls": True, "apps": True}
    assert described(session(URLS)) == {"client": info, "urls": True, "apps": False}


@pytest.mark.parametrize(
    "session_id", [None, "", "x", "550e8400-e29b-41d4-a716-446655440000", "é", "A" * 100_000]
)
def test_without_a_session_of_this_package_the_capabilities_are_unknown(session_id: str | None) -> None:
    assert described(session_id) == {"client": {}, "urls": True, "apps": False}


def test_one_environment_reads_the_session_that_another_began() -> None:
    session_id = session(URLS)
    other = LegacyClient(server, ports=make_ports())  # other keys, other randomness
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sign_in"}}
    response = other.send(body, mcp_session_id=session_id)
    assert json.loads(response.body)["error"]["code"] == -32042


@pytest.mark.parametrize(
    ("session_id", "is_sent"),
    [(session(URLS), True), (session(FORMS), False), (session({}), False), (None, True), ("foreign", True)],
    ids=["urls", "forms", "nothing", "no session", "foreign session"],
)
def test_a_client_is_sent_to_a_url_if_it_declared_them_or_nothing_is_known(
    session_id: str | None, is_sent: bool
) -> None:
    _, message = call("sign_in", session_id)
    assert (message.get("error", {}).get("code") == -32042) is is_sent
    if not is_sent:
        assert "https://x.test/" in text(message["result"])


def test_the_metadata_of_a_request_takes_precedence_over_the_session() -> None:
    declared = {"io.modelcontextprotocol/clientCapabilities": URLS}
    assert described(session(FORMS), **declared)["urls"] is True


def test_the_session_has_the_version_where_the_header_is_missing() -> None:
    older = session(URLS, "2025-06-18")
    assert described(older, version=None)["urls"] is False, "2025-06-18 has no URL mode"
    assert described(older, version="2025-11-25")["urls"] is True, "the header decides"


def test_log_messages_have_the_level_that_the_client_named() -> None:
    name = "io.modelcontextprotocol/logLevel"

    def is_logged(session_id: str | None, **meta: Any) -> bool:
        return "notifications/message" in call("describe_client", session_id, **meta)[0].body

    assert not is_logged(session({}))
    assert is_logged(session({}, _meta={name: "info"}))
    assert not is_logged(session({}, _meta={name: "error"}))
    assert is_logged(session({}, _meta={name: "error"}), **{name: "debug"})
    assert is_logged(None, **{name: "info"})


def test_a_new_session_inherits_nothing_from_an_earlier_one() -> None:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    earlier = session(URLS, _meta={"io.modelcontextprotocol/logLevel": "info"})
    response = LegacyClient(server).send(body, mcp_session_id=earlier)
    read = SessionId.decode(response.headers["mcp-session-id"])
    assert read is not None
    assert (read.capabilities, read.log_level, read.client_name) == ({}, None, "x")


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_every_event_source_delivers_the_session_in_both_directions(source: str) -> None:
    def invoke(method: str, session_id: str | None = None, **params: Any) -> Any:
        event = dict(post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        given = {} if session_id is None else {"Mcp-Session-Id": session_id}
        event["headers"] = {"accept": "application/json", "content-type": "application/json", **given}
        return signed_out.lambda_handler(FORMATS.get(source, dict)(event), None)

    signed_out = Server("sessions", ports=make_ports)
    signed_out.tool(describe_client)
    info = {"name": "claude-ai", "version": "2.0"}
    opened = invoke("initialize", protocolVersion="2025-11-25", capabilities=URLS, clientInfo=info)
    headers = opened.get("headers") or opened["multiValueHeaders"]
    given = {name.lower(): value for name, value in headers.items()}["mcp-session-id"]
    session_id = given if isinstance(given, str) else given[0]
    called = json.loads(invoke("tools/call", session_id, name="describe_client")["body"])
    assert json.loads(text(called["result"])) == {"client": info, "urls": True, "apps": False}


def test_a_session_is_no_part_of_the_caller() -> None:
    contexts = []
    plain = Server("plain")

    @plain.tool
    def who(ctx: Context) -> str:
        contexts.append((ctx.principal, ctx.reference("x")))
        return ""

    client = LegacyClient.of(plain, "alice")
    for session_id in (session(URLS), session(URLS), "foreign"):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "arguments": {}}}
        assert client.send(body, mcp_session_id=session_id).status == 200
    assert len(set(contexts)) == 1


def test_a_session_admits_no_caller() -> None:
    session_id = session(URLS)
    client = LegacyClient.of(server, "alice")
    client.user = None
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert client.send(body, mcp_session_id=session_id).status == 401


def test_clients_of_2026_have_no_session() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    response = LegacyClient(server, "2026-07-28").send(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "describe_client", "_meta": meta},
        },
        mcp_method="tools/call",
        mcp_name="describe_client",
        mcp_session_id=session(URLS),
    )
    result = json.loads(response.body)["result"]
    assert json.loads(text(result)) == {"client": {}, "urls": False, "apps": False}


@pytest.mark.parametrize("method", ["DELETE", "GET"])
def test_a_session_cannot_be_ended_and_has_no_stream(method: str) -> None:
    response = LegacyClient(server).send("", method=method, mcp_session_id=session(URLS))
    assert (response.status, response.headers["allow"]) == (405, "POST")
