"""Protected resource metadata and the challenges that name it."""

import httpx2
import pytest
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
)

from mcp_roundtrip.server.protected_resource import WELL_KNOWN, ProtectedResource
from support.token_issuer import ISSUER

MCP = ProtectedResource("https://mcp.test/mcp", [ISSUER], ("db:read",), "Databases")
BARE = ProtectedResource("https://mcp.test", [ISSUER])


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
    metadata = ProtectedResource(resource, [ISSUER])
    assert metadata.url == url
    parsed = build_protected_resource_metadata_discovery_urls(None, resource)
    served = {url.split("/.well-known", maxsplit=1)[0] + path for path in metadata.paths}
    assert {each.removesuffix("/") for each in parsed} <= served
    assert WELL_KNOWN in metadata.paths


def response(challenge: str) -> httpx2.Response:
    """Return a response with a challenge, for the parsers of the official client."""
    return httpx2.Response(401, headers={"www-authenticate": challenge})


def test_a_challenge_without_a_token_has_no_error_and_without_known_scopes_no_scope():
    challenge = MCP.challenge()
    assert challenge == f'Bearer scope="db:read", resource_metadata="{MCP.url}"'
    assert extract_scope_from_www_auth(response(challenge)) == "db:read"
    assert extract_resource_metadata_from_www_auth(response(challenge)) == MCP.url
    assert extract_field_from_www_auth(response(challenge), "error") is None
    assert BARE.challenge("invalid_token") == f'Bearer error="invalid_token", resource_metadata="{BARE.url}"'


def test_characters_not_allowed_in_a_quoted_string_are_escaped_or_removed():
    odd = ProtectedResource('https://mcp.test/a"b\\c\r\nd', [ISSUER])
    assert odd.challenge().endswith('/a\\"b\\\\cd"')
