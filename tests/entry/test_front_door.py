"""Requests that the front door serves itself. tests/functions covers `functions/front_door`."""

from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.entry.catalog_and_forwarding import Catalog
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.server.options import PAGE_SIZE
from support.client_requests import refused
from support.deployment import Deployment

plain, lasting = Server("plain"), Server("lasting")


@plain.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@lasting.tool(task="optional")
def last(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


def behind_door(page_size=PAGE_SIZE, **servers):
    """Return a client of a front door of these servers."""
    options = {"page_size": page_size, "list_ttl_ms": 7, "legacy_clients": page_size != 1}
    return Deployment(plain, owners=servers, user=None, through_door=True, door_options=options)


@pytest.mark.parametrize("text", ["[]", '{"tools": [{}]}', '{"tools": [{"definition": {"name": "a"}}]}', "{"])
def test_a_malformed_catalog_is_refused(text):
    with pytest.raises(ValueError, match=r"JSON|catalog"):
        Catalog.read(text)


def test_a_forwarded_call_parses_no_definition():
    client = behind_door(plain=plain, lasting=lasting)
    assert client.text("greet", name="Ada") == "Hello, Ada!"
    assert client.front_door is not None
    parsed = [name for name, entry in client.front_door.catalog.tools.items() if "members" in vars(entry)]
    assert parsed == []


def test_a_cached_list_is_sent_with_the_id_of_each_request():
    client = behind_door(plain=plain, lasting=lasting)
    ids = (1, 'a "quoted" one', 1)
    answers = [client.post("tools/list", id=request_id) for request_id in ids]
    assert tuple(answer["id"] for answer in answers) == ids
    assert answers[0]["result"] == answers[1]["result"] == answers[2]["result"]
    assert [tool["name"] for tool in answers[0]["result"]["tools"]] == ["greet", "last"]


def test_pages_of_a_list_are_cached_separately_and_other_cursors_are_refused():
    client = behind_door(page_size=1, plain=plain, lasting=lasting)
    for _ in range(2):
        first = client.result("tools/list")
        second = client.result("tools/list", cursor=first["nextCursor"])
        assert [first["tools"][0]["name"], second["tools"][0]["name"]] == ["greet", "last"]
        assert ("nextCursor" in second, second["ttlMs"]) == (False, 7)
        cursors: tuple[Any, ...] = ("1.forged", 1, [first["nextCursor"]], {})
        for cursor in cursors:
            assert client.error("tools/list", cursor=cursor)["code"] == -32602
    assert client.by(version="2025-11-25").refusal("tools/list") == (400, -32022)


def throttled(*given):
    raise ForwardingFailed("TooManyRequestsException", is_throttled=True)


@pytest.mark.parametrize("path", ["/mcp", "/tools/plain"])
@pytest.mark.parametrize(("version", "status"), [(PROTOCOL_VERSION, 429), ("2025-11-25", 200)])
def test_a_throttled_call_has_the_code_429_and_its_status_if_the_client_reads_such_a_body(
    path, version, status
):
    client = behind_door(plain=plain).by(version=version, replaced_ports={"forward": throttled})
    body = client.body("tools/call", name="greet", arguments={"name": "Ada"})
    assert refused(client.send(body, path=path)) == (status, 429)


def test_a_page_of_a_throttled_function_is_a_server_error():
    client = behind_door(plain=plain).by(replaced_ports={"forward": throttled})
    assert refused(client.send("", http_method="GET", path="/tools/plain")) == (500, 429)
