import pytest
from mcp.shared.auth import OAuthClientInformationFull
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl

from support.authorized_server import deployed
from support.clients import block_of
from support.oauth_client import REDIRECT, MemoryTokenStorage, signed_in_client
from support.openid_provider import Person, openid_provider

OTHER = "https://other.example/mcp"


@pytest.fixture(scope="module")
def provider():
    with openid_provider() as running:
        yield running


def registered(provider, client_id):
    client = OAuthClientInformationFull(
        client_id=client_id,
        redirect_uris=[AnyUrl(REDIRECT)],
        token_endpoint_auth_method="none",
        issuer=provider.issuer,
    )
    return MemoryTokenStorage(client=client)


@pytest.mark.anyio
async def test_a_client_registers_itself_and_signs_in(provider):
    person, storage = Person(), MemoryTokenStorage()
    with deployed(provider.issuer) as server:
        async with signed_in_client(server.url, storage, browser=person) as client:
            assert block_of((await client.call_tool("read", {})).content) == "alice"
    assert person.scopes == ["billing db:read offline_access"]
    assert storage.client is not None
    assert storage.client.client_id not in ("app", "reader")


@pytest.mark.anyio
async def test_a_registered_client_asks_for_more_scopes_when_a_tool_needs_them(provider):
    person = Person()
    with deployed(provider.issuer, initial_scopes=["db:read"]) as server:
        async with signed_in_client(server.url, registered(provider, "app"), browser=person) as client:
            assert block_of((await client.call_tool("read", {})).content) == "alice"
            assert block_of((await client.call_tool("write", {})).content) == "written"
    assert [set(scopes.split()) - {"offline_access"} for scopes in person.scopes] == [
        {"db:read"},
        {"billing", "db:read", "db:write"},
    ]


@pytest.mark.anyio
async def test_a_client_cannot_call_a_tool_whose_scope_the_provider_refuses(provider):
    with deployed(provider.issuer, initial_scopes=["db:read"]) as server:
        storage = registered(provider, "reader")
        async with signed_in_client(server.url, storage, browser=Person()) as client:
            assert block_of((await client.call_tool("read", {})).content) == "alice"
            with pytest.raises(MCPError):
                await client.call_tool("write", {})
        assert ("insufficient_scope", {"scopes": ["db:write", "billing"]}) in server.observer.events


def test_only_an_access_token_for_this_endpoint_is_accepted(provider):
    with deployed(provider.issuer) as server:
        assert server.post(provider.machine_token(server.url)).status_code == 200
        assert server.post(provider.machine_token(OTHER)).status_code == 401
        assert server.post(provider.machine_token(None)).status_code == 401
        assert server.reasons == ["token_audience", "token_malformed"]
        assert server.post(provider.machine_token(server.url), "write").status_code == 403


@pytest.mark.anyio
async def test_an_id_token_is_not_an_access_token(provider):
    with deployed(provider.issuer) as server:
        tokens = await provider.tokens_of_a_user(server.url, "openid db:read")
        assert server.post(tokens["access_token"]).status_code == 200
        assert server.post(tokens["id_token"]).status_code == 401
        assert server.reasons == ["token_audience"]
    with deployed(provider.issuer, settings={"token_audience": "app"}) as server:
        assert server.post(tokens["id_token"]).status_code == 401
        assert server.reasons == ["token_id_token"]


def test_a_named_audience_replaces_the_uri_of_the_endpoint(provider):
    with deployed(provider.issuer, settings={"token_audience": OTHER}) as server:
        assert server.post(provider.machine_token(OTHER)).status_code == 200
        assert server.post(provider.machine_token(server.url)).status_code == 401
