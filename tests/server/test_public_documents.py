"""Public documents: the metadata of the protected resource, and the Server Card (SEP-2127) of a named one."""

import json
import re

import httpx2
import jsonschema
import pytest
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
)

from mcp_roundtrip import Server
from mcp_roundtrip.protocol.http import HttpRequest
from mcp_roundtrip.server.public_documents import METADATA_MAX_AGE_S, ProtectedResource
from mcp_roundtrip_testing.execution_environments import load_module
from support.deployment import Deployment
from support.project import ROOT
from support.token_issuer import ISSUER

NAME = "com.example/databases"
CARD_PATH = "/mcp/server-card"
METADATA = "/.well-known/oauth-protected-resource"
NOTIFICATION = '{"jsonrpc":"2.0","method":"notifications/cancelled"}'

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
server.tool(name="read", scopes=["db:read"])(lambda: "")

CLIENT = Deployment(server, replaced_settings={"server_card": NAME, "token_issuer": "https://id.test/"})


def ask(path=CARD_PATH, method="GET", headers=None, client=CLIENT):
    return client.respond(HttpRequest(method, headers or {}, NOTIFICATION, path=path))


DOCUMENTS = {
    CARD_PATH: {
        "content-type": "application/mcp-server-card+json",
        "access-control-expose-headers": "ETag",
        "cache-control": "public, max-age=3600",
    },
    METADATA: {"content-type": "application/json", "cache-control": f"public, max-age={METADATA_MAX_AGE_S}"},
    f"{METADATA}/mcp": {"content-type": "application/json"},
}
"""Paths of documents, and some of their headers."""

each_document = pytest.mark.parametrize("path", DOCUMENTS)


@each_document
def test_a_document_is_served_without_a_token_to_every_origin(path):
    for origin in ({}, {"origin": "https://anywhere.test"}):
        answer = ask(path, headers=origin)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers.items() >= DOCUMENTS[path].items()
    answer = ask(path, "HEAD")
    assert (answer.status, answer.body, answer.headers) == (200, "", ask(path).headers)
    answer = ask(path, "OPTIONS", {"origin": "https://anywhere.test"})
    assert (answer.status, answer.body) == (204, "")
    assert answer.headers["access-control-allow-origin"] == "*"
    allowed = answer.headers["access-control-allow-headers"]
    assert "If-None-Match" in allowed if path == CARD_PATH else allowed == "*"


def test_other_paths_and_methods_are_for_messages():
    for path in ("/mcp", "", "/mcp/server-card/", "server-card"):
        answer = ask(path)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
    for path in DOCUMENTS:
        assert ask(path, "DELETE").status == 405
    assert ask(client=Deployment(server)).status == 404, "a card needs a name"
    answer = ask("/mcp", "POST", client=Deployment(server))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_a_card_is_at_the_url_of_the_endpoint_only():
    assert ask("/server-card").status == 200, "without the base path, which an event may not have"
    for path in ("/other/server-card", "p/server-card"):
        assert ask(path).status == 404
    without_url = Deployment(
        server, replaced_settings={"server_card": NAME, "audience": "api://databases/mcp"}
    )
    assert ask(client=without_url).status == 404


def test_a_client_that_has_the_current_card_gets_no_body():
    etag = ask().headers["etag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        answer = ask(headers={"if-none-match": known})
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, "", etag)
    assert ask(headers={"if-none-match": '"other"'}).status == 200
    renamed = CLIENT.by(replaced_settings={"server_card": "com.example/other"})
    assert ask(headers={"if-none-match": etag}, client=renamed).status == 200


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


MCP = ProtectedResource("https://mcp.test/mcp", ISSUER, ("db:read",), "Databases")
BARE = ProtectedResource("https://mcp.test", ISSUER)


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        ("https://mcp.test/mcp", "https://mcp.test/.well-known/oauth-protected-resource/mcp"),
        ("https://mcp.test/a/b/", "https://mcp.test/.well-known/oauth-protected-resource/a/b"),
        ("https://mcp.test", "https://mcp.test/.well-known/oauth-protected-resource"),
        ("https://mcp.test/", "https://mcp.test/.well-known/oauth-protected-resource"),
        ("https://mcp.test:8443/mcp", "https://mcp.test:8443/.well-known/oauth-protected-resource/mcp"),
    ],
)
def test_the_document_is_served_where_the_official_client_requests_it(resource, url):
    metadata = ProtectedResource(resource, ISSUER)
    assert metadata.url == url
    parsed = build_protected_resource_metadata_discovery_urls(None, resource)
    served = {url.split("/.well-known", maxsplit=1)[0] + path for path in metadata.paths}
    assert set(parsed) <= served
    assert METADATA in metadata.paths


def response(challenge: str) -> httpx2.Response:
    """Return a response with a challenge, for the parsers of the official client."""
    return httpx2.Response(401, headers={"www-authenticate": challenge})


def test_a_challenge_without_a_token_has_no_error_and_without_known_scopes_no_scope():
    challenge = MCP.challenge()
    assert challenge == f'Bearer scope="db:read", resource_metadata="{MCP.url}"'
    assert extract_scope_from_www_auth(response(challenge)) == "db:read"
    assert extract_resource_metadata_from_www_auth(response(challenge)) == MCP.url
    assert extract_field_from_www_auth(response(challenge), "error") is None
    assert BARE.document().keys() == {"resource", "authorization_servers", "bearer_methods_supported"}
    assert BARE.challenge("invalid_token") == f'Bearer error="invalid_token", resource_metadata="{BARE.url}"'


def test_characters_not_allowed_in_a_quoted_string_are_escaped_or_removed():
    odd = ProtectedResource('https://mcp.test/a"b\\c\r\nd', ISSUER)
    assert odd.challenge().endswith('/a\\"b\\\\cd"')
