"""A client obtains a token, and further scopes when a tool needs them, over HTTP."""

import json

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from mcp_roundtrip_tools.run.http.messages import Response
from support.authorization_server import PATH, authorization_server
from support.authorized_server import deployed, deployed_with_sign_in, mapped, renamed
from support.clients import block_of
from support.logged_lines import logged_lines
from support.messages import call, headers
from support.oauth_client import MemoryTokenStorage, User, signed_in_client
from support.token_issuer import ONE, RSA, jwks


@pytest.fixture
def issuer():
    with authorization_server() as found:
        yield found


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_signs_in_and_steps_up(mode):
    alice = User()
    with deployed_with_sign_in() as server:
        async with signed_in_client(server.url, MemoryTokenStorage(), mode, alice) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["read", "write"]
            assert alice.scopes == ["billing db:read"]
            read = await client.call_tool("read", {})
            assert block_of(read.content) == "alice"
            assert len(alice.scopes) == 1
            written = await client.call_tool("write", {})
            assert block_of(written.content) == "written"
        assert [set(scopes.split()) for scopes in alice.scopes[1:]] == [{"billing", "db:read", "db:write"}]


@pytest.mark.anyio
async def test_behind_a_gateway_that_renames_the_challenge_the_client_finds_the_metadata_but_cannot_step_up():
    """Clients of such an endpoint must request all scopes at first."""
    alice = User()
    with deployed_with_sign_in(gateway=renamed) as server:
        async with signed_in_client(server.url, MemoryTokenStorage(), browser=alice) as client:
            assert block_of((await client.call_tool("read", {})).content) == "alice"
            with pytest.raises(MCPError):
                await client.call_tool("write", {})
    assert alice.scopes == ["billing db:read"]
    with deployed_with_sign_in(gateway=renamed, initial_scopes=["billing", "db:write"]) as server:
        async with signed_in_client(server.url, MemoryTokenStorage()) as client:
            assert block_of((await client.call_tool("write", {})).content) == "written"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_mapping_of_the_template_restores_a_renamed_challenge(mode):
    alice = User()
    with deployed_with_sign_in(gateway=mapped) as server:
        refused = server.post(None)
        assert refused.headers["www-authenticate"] == refused.headers["x-amzn-remapped-www-authenticate"]
        async with signed_in_client(server.url, MemoryTokenStorage(), mode, alice) as client:
            assert block_of((await client.call_tool("read", {})).content) == "alice"
            assert block_of((await client.call_tool("write", {})).content) == "written"
    assert len(alice.scopes) == 2


@pytest.mark.anyio
async def test_a_hidden_tool_never_causes_a_scope_challenge():
    alice = User()
    with deployed_with_sign_in(hide_unauthorized=True, initial_scopes=["db:read"]) as server:
        async with signed_in_client(server.url, MemoryTokenStorage(), browser=alice) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["read"]
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("write", {})
    assert unknown.value.error.code == -32602
    assert alice.scopes == ["db:read"]


def test_the_location_of_the_keys_can_be_configured(issuer):
    settings = {"token_jwks_uri": f"{issuer.issuer}/keys", "token_algorithms": "RS256"}
    issuer.keys = [RSA]
    with deployed(issuer.issuer, settings=settings) as server:
        assert server.post(issuer.token(server.url, scope="db:read")).status_code == 200
        issuer.keys = [ONE]
        assert server.post(issuer.token(server.url, scope="db:read")).status_code == 401
    assert issuer.asked == {f"{PATH}/keys": 1}


def test_a_second_authorization_header_is_a_malformed_request(issuer):
    with deployed(issuer.issuer) as server:
        body, token = call("read"), issuer.token(server.url, scope="db:read")
        twice = [*headers(body).items(), *[("authorization", f"Bearer {token}")] * 2]
        answer = httpx2.post(server.url, content=json.dumps(body), headers=twice)
        assert answer.status_code == 400
        assert 'error="invalid_request"' in answer.headers["www-authenticate"]


def test_a_token_in_the_query_is_ignored(issuer):
    with deployed(issuer.issuer) as server:
        body, token = call("read"), issuer.token(server.url, scope="db:read")
        url = f"{server.url}?access_token={token}"
        assert httpx2.post(url, content=json.dumps(body), headers=headers(body)).status_code == 401


HTML = Response(200, (("content-type", "text/html"),), b"<!doctype html><title>Sign in</title>")

BROKEN = {
    "down": (Response(503), "issuer_status_503"),
    "an HTML page": (HTML, "issuer_jwks"),
    "its private key": (Response(200, body=jwks(ONE.jwk(private=True))), "issuer_no_keys"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_unavailable_keys_cause_no_new_sign_in_and_one_logged_error(issuer, how, capsys):
    reply, reason = BROKEN[how]
    issuer.documents[f"{PATH}/keys"] = reply
    with deployed(issuer.issuer) as server:
        for _ in range(3):
            answer = server.post(issuer.token(server.url, scope="db:read"))
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, -32603)
            assert "www-authenticate" not in answer.headers
            assert reason not in answer.text
        assert server.reasons == [reason] * 3
        errors = [line for line in logged_lines(capsys) if line["level"] == "ERROR"]
        assert [(line["message"], line["reason"]) for line in errors] == [("issuer_unavailable", reason)]
        assert issuer.asked[f"{PATH}/keys"] == 1
        assert server.post(None).status_code == 401


def test_behind_an_authorizer_no_keys_are_fetched_and_the_metadata_is_served(issuer):
    with deployed(issuer.issuer, mode="jwt") as server:
        assert server.post(issuer.token(server.url)).status_code == 401
        root = server.url.removesuffix("/mcp")
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
            assert httpx2.get(root + path).json()["authorization_servers"] == [issuer.issuer]
            assert httpx2.head(root + path).headers["content-type"] == "application/json"
    assert not issuer.asked
