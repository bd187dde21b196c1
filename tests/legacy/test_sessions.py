import json
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.session_id import SessionId
from mcp_roundtrip_testing.http_requests import read_messages
from support.client_requests import text
from support.deployment import Deployment, legacy
from support.servers import server_of

UI = "io.modelcontextprotocol/ui"
URLS: dict[str, Any] = {"elicitation": {"url": {}}}

server = Server("sessions")


@server.tool
def describe_client(ctx: Context) -> dict[str, Any]:
    """Return what the tool can know about the client."""
    ctx.log("info", "described")
    urls, apps = ctx.supports("elicitation.url"), ctx.supports(f"extensions.{UI}")
    return {"client": dict(ctx.client or {}), "urls": urls, "apps": apps}


INFO = {"name": "claude-ai", "version": "2.0"}


def session(capabilities, version="2025-11-25", **members):
    """The id of a session in which the client declared this."""
    given = {
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {**INFO, "title": "Claude"},
    }
    response = legacy(server, version=None).request("initialize", **given, **members)
    assert response.status == 200
    return response.headers["mcp-session-id"]


def call(tool, session_id, *, version="2025-11-25", **meta):
    client = legacy(server, version=version, session_id=session_id)
    return client.request("tools/call", name=tool, arguments={}, _meta=meta)


def result_of(response):
    assert response.status == 200
    return json.loads(text(read_messages(response)[-1]["result"]))


@pytest.mark.parametrize(
    "session_id", [None, "", "x", "550e8400-e29b-41d4-a716-446655440000", "é", "A" * 100_000]
)
def test_without_a_session_of_this_package_the_capabilities_are_unknown(session_id):
    assert result_of(call("describe_client", session_id)) == {"client": {}, "urls": True, "apps": False}


def test_capabilities_that_no_header_can_hold_open_no_session():
    with pytest.raises(KeyError):
        session({"experimental": {"x": "x" * 100_000}})


def test_log_messages_have_the_level_that_the_client_named():
    name = "io.modelcontextprotocol/logLevel"

    def is_logged(session_id: str | None, **meta: Any) -> bool:
        return "notifications/message" in call("describe_client", session_id, **meta).body

    assert not is_logged(session({}))
    assert is_logged(session({}, _meta={name: "info"}))
    assert not is_logged(session({}, _meta={name: "error"}))
    assert is_logged(session({}, _meta={name: "error"}), **{name: "debug"})
    assert is_logged(None, **{name: "info"})


def test_a_session_is_no_part_of_the_caller_and_modern_clients_have_none():
    contexts = []

    def who(ctx: Context) -> str:
        contexts.append((ctx.principal, ctx.reference("x")))
        return ""

    for session_id in (session(URLS), session(URLS), "foreign"):
        legacy(server_of(who), user="alice", session_id=session_id).call("who")
    assert len(set(contexts)) == 1
    unknown = legacy(server, mode=AuthMode.JWT, session_id=session(URLS))
    assert unknown.request("tools/list").status == 401
    modern = Deployment(server, user=None, capabilities={}, has_table=False)
    body = modern.body("tools/call", name="describe_client")
    body["params"]["_meta"].pop("io.modelcontextprotocol/clientInfo")
    response = modern.send(body, mcp_session_id=session(URLS))
    assert result_of(response) == {"client": {}, "urls": False, "apps": False}


def test_a_new_session_inherits_nothing_from_an_earlier_one():
    earlier = session(URLS, _meta={"io.modelcontextprotocol/logLevel": "info"})
    opening = legacy(server, session_id=earlier, capabilities={})
    opening.initialize()
    read = SessionId.decode(opening.session_id or "")
    assert read is not None
    assert (read.capabilities, read.log_level) == ({}, None)
