"""The OAuth metadata of the protected resource is public; no other path is."""

import json

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.auth.protected_resource import MAX_AGE_S
from mcp_roundtrip.protocol.http import HttpRequest
from support.deployment import Deployment

ROOT = "/.well-known/oauth-protected-resource"
SUFFIXED = f"{ROOT}/mcp"
server = Server("databases", title="Databases")


@server.tool(scopes=["db:read"])
def read() -> str:
    return ""


CLIENT = Deployment(server, config={"authorization_server": "https://id.test/"})


def ask(path, method="GET", headers=None, client=CLIENT):
    return client.respond(HttpRequest(method, headers or {}, "", path=path))


@pytest.mark.parametrize("path", [ROOT, SUFFIXED])
@pytest.mark.parametrize("origin", [{}, {"origin": "https://anywhere.test"}], ids=["no origin", "any origin"])
def test_the_metadata_is_served_without_a_token_to_every_origin(path, origin):
    answer = ask(path, headers=origin)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cache-control"] == f"public, max-age={MAX_AGE_S}"
    assert json.loads(answer.body) == {
        "resource": "https://mcp.test/mcp",
        "authorization_servers": ["https://id.test/"],
        "scopes_supported": ["db:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Databases",
    }


def test_a_head_request_gets_the_headers_and_a_preflight_request_allows_headers_of_browsers():
    answer = ask(ROOT, "HEAD")
    assert (answer.status, answer.body, answer.headers) == (200, "", ask(ROOT).headers)
    answer = ask(SUFFIXED, "OPTIONS", {"origin": "https://anywhere.test"})
    assert (answer.status, answer.body) == (204, "")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == "*"


@pytest.mark.parametrize(
    ("path", "method"),
    [
        (f"{ROOT}/other", "GET"),
        (f"{ROOT}/", "GET"),
        (f"{SUFFIXED}/x", "GET"),
        ("/mcp", "GET"),
        ("", "GET"),
        (ROOT, "DELETE"),
        (ROOT, "PUT"),
    ],
)
def test_other_paths_are_not_served(path, method):
    assert ask(path, method).status == 405


@pytest.mark.parametrize("path", [ROOT, SUFFIXED, "/mcp"])
def test_a_post_to_the_metadata_path_needs_a_token(path):
    answer = ask(path, "POST")
    assert answer.status == 401
    metadata = "https://mcp.test/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["www-authenticate"] == f'Bearer scope="db:read", resource_metadata="{metadata}"'


def test_no_metadata_is_served_without_an_authorization_server():
    client = Deployment(server)
    assert ask(ROOT, client=client).status == 405
    answer = ask("/mcp", "POST", client=client)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
