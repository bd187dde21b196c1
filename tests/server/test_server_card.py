"""The Server Card (SEP-2127): a public document that describes the endpoint; off unless it has a name."""

import json
import re

import jsonschema
import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.protocol.http import HttpRequest
from mcp_roundtrip_testing.environments import load_module
from mcp_roundtrip_testing.ports import RecordingObserver
from support.deployment import Deployment
from support.project import ROOT

NAME = "com.example/databases"
PATH = "/mcp/server-card"

CARD = {
    "type": "object",
    "required": ["$schema", "name", "version", "description", "remotes"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"},
        "name": {"pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "version": {"type": "string", "maxLength": 255},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "icons": {"type": "array", "items": {"required": ["src"]}},
        "websiteUrl": {"type": "string", "format": "uri"},
        "remotes": {
            "type": "array",
            "items": {
                "required": ["type", "url"],
                "properties": {
                    "type": {"enum": ["streamable-http", "sse"]},
                    "url": {"pattern": "^https?://"},
                },
            },
        },
    },
}
"""The rules of the draft's `ServerCard` for the members that this package writes."""

SHARED = ("version", "title", "description")
INPUT = {"description", "isRequired", "format", "value", "isSecret", "default", "placeholder", "choices"}
REGISTRY_ENTRY = {
    **CARD,
    "properties": {
        **CARD["properties"],
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "repository": {"required": ["url", "source"]},
    },
}
"""The rules of the registry's `server.json` for the members of ours."""

server = Server("databases", title="Databases", description="Creates databases.", version="2.1.0")


CLIENT = Deployment(server, config={"server_card": NAME})


def ask(method="GET", path=PATH, headers=None, client=CLIENT):
    return client.respond(HttpRequest(method, headers or {}, "", path=path))


@pytest.mark.parametrize("origin", [{}, {"origin": "https://anywhere.test"}], ids=["no origin", "any origin"])
def test_the_card_is_served_without_a_caller_to_every_origin(origin):
    answer = ask(headers=origin)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/mcp-server-card+json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-expose-headers"] == "ETag"
    assert answer.headers["cache-control"] == "public, max-age=3600"
    card = json.loads(answer.body)
    jsonschema.validate(card, CARD)
    assert card == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": NAME,
        "version": "2.1.0",
        "description": "Creates databases.",
        "title": "Databases",
        "remotes": [
            {
                "type": "streamable-http",
                "url": "https://mcp.test/mcp",
                "supportedProtocolVersions": ["2026-07-28", "2025-11-25", "2025-06-18"],
            }
        ],
    }


@pytest.mark.parametrize("title", [None, "x" * 1_500])
def test_a_server_without_a_description_has_a_valid_card_whose_log_line_names_no_caller(title):
    plain = Server("databases", title=title, version="1" * 300, legacy_clients=False)
    client = CLIENT.by(server=plain, observer=RecordingObserver())
    card = json.loads(ask(client=client).body)
    jsonschema.validate(card, CARD)
    assert card["remotes"][0]["supportedProtocolVersions"] == ["2026-07-28"]
    assert client.observer.events == [("request_completed", {"outcome": "server_card", "status": 200})]


def test_a_client_that_has_the_current_card_gets_no_body():
    etag = ask().headers["etag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        answer = ask(headers={"if-none-match": known})
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, "", etag)
    assert ask(headers={"if-none-match": '"other"'}).status == 200
    renamed = CLIENT.by(config={"server_card": "com.example/other"})
    assert ask(headers={"if-none-match": etag}, client=renamed).status == 200


def test_a_head_request_gets_the_headers_and_a_preflight_request_allows_a_conditional_one():
    answer = ask("HEAD")
    assert (answer.status, answer.body, answer.headers) == (200, "", ask().headers)
    answer = ask("OPTIONS", headers={"origin": "https://anywhere.test"})
    assert (answer.status, answer.body) == (204, "")
    assert "If-None-Match" in answer.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", PATH),
        ("DELETE", PATH),
        ("GET", "/other/server-card"),
        ("GET", "/mcp/x/server-card"),
        ("GET", "/mcp/server-card/"),
        ("GET", "server-card"),
    ],
)
def test_no_other_request_gets_the_card(method, path):
    assert ask(method, path).status in (401, 405)
    assert ask(client=Deployment(server)).status == 405, "a card needs a name"


def test_a_front_door_has_the_card_of_the_whole_endpoint_and_no_owner_is_invoked():
    options = {"description": "The shop's tools."}
    front_door = Deployment(server, config={"server_card": NAME}, through_door=True, door_options=options)
    card = json.loads(ask(client=front_door).body)
    jsonschema.validate(card, CARD)
    assert (card["description"], card["remotes"][0]["url"]) == ("The shop's tools.", "https://mcp.test/mcp")
    assert not front_door.forwarded


def test_the_server_json_for_the_registry_describes_the_front_door_behind_a_host_of_the_user():
    entry = json.loads((ROOT / "docs/guides/server.json").read_text("utf-8"))
    jsonschema.validate(entry, REGISTRY_ENTRY)
    front_door = load_module(ROOT / "functions/front_door/app.py").front_door
    card = json.loads(ask(client=CLIENT.by(through_door=True, front_door=front_door)).body)
    assert {name: entry[name] for name in SHARED} == {name: card[name] for name in SHARED}
    (remote,) = entry["remotes"]
    assert remote["url"].endswith("/mcp")
    assert re.findall(r"{(\w+)}", remote["url"]) == list(remote["variables"])
    assert set().union(*remote["variables"].values()) <= INPUT
