"""Sign-in at oidc-provider, a certified OpenID provider in a process of Node.js."""

import re
import socket
import subprocess
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode, urljoin

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl

from support import skips
from support.authorized_server import deployed
from support.clients import block_of
from support.oauth_client import REDIRECT, MemoryTokenStorage, User, signed_in_client
from support.project import ROOT

PACKAGE = ROOT / ".cache/programs/node_modules/oidc-provider"
PROGRAM = Path(__file__).with_name("openid_provider.mjs")
OTHER = "https://other.example/mcp"

START_S = 30
"""Starting takes 0.3 s, but longer on a busy computer."""


@dataclass(frozen=True)
class OpenIdProvider:
    issuer: str

    def machine_token(self, resource: str | None) -> str:
        """Return an access token of a client without a user; an opaque one without a resource."""
        form = {"grant_type": "client_credentials", "scope": "db:read", "resource": resource}
        given = {name: value for name, value in form.items() if value is not None}
        response = httpx2.post(f"{self.issuer}/token", data=given, auth=("machine", "a secret of the tests"))
        return str(response.raise_for_status().json()["access_token"])

    async def tokens_of_a_user(self, resource: str, scope: str) -> dict[str, str]:
        """Return the response of the token endpoint to the client `app` after Alice signed in."""
        person, verifier = Person(), "v" * 43
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        client = {"client_id": "app", "redirect_uri": REDIRECT, "resource": resource}
        pkce = {"code_challenge": challenge, "code_challenge_method": "S256"}
        query = urlencode({"response_type": "code", "scope": scope, **client, **pkce})
        await person.open(f"{self.issuer}/auth?{query}")
        form = {"grant_type": "authorization_code", "code_verifier": verifier, "code": person.query["code"]}
        response = httpx2.post(f"{self.issuer}/token", data={**form, **client})
        return dict(response.raise_for_status().json())


@pytest.fixture(scope="module")
def provider():
    """Run the provider until the block ends. It inherits a socket, so that a request waits for the start."""
    node = skips.find_node("oidc-provider", PACKAGE)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        descriptor = listening.fileno()
        issuer = f"http://127.0.0.1:{listening.getsockname()[1]}"
        arguments = [str(PACKAGE / "lib/index.js"), issuer, str(descriptor)]
        process = subprocess.Popen(
            [node, PROGRAM, *arguments],
            pass_fds=[descriptor],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    with process:
        try:
            httpx2.get(f"{issuer}/.well-known/openid-configuration", timeout=START_S).raise_for_status()
            yield OpenIdProvider(issuer)
        finally:
            process.kill()  # it has no data to save


class Person(User):
    """A person who signs in as Alice on the provider's pages, consents, and is sent back to the client."""

    async def sign_in(self, browser: httpx2.AsyncClient, url: str) -> httpx2.Response:
        response = await browser.get(url)
        while not (target := response.headers.get("location", "")).startswith(REDIRECT):
            if target:
                response = await browser.get(urljoin(str(response.url), target))
            else:
                response = await _submit(browser, response)
        return response


async def _submit(browser: httpx2.AsyncClient, page: httpx2.Response) -> httpx2.Response:
    """Submit the form of a page, which asks for a login or for consent."""
    [action] = re.findall(r'action="([^"]+)"', page.raise_for_status().text)
    [prompt] = re.findall(r'name="prompt" value="([^"]+)"', page.text)
    login = {"login": "alice", "password": "a password"} if prompt == "login" else {}
    return await browser.post(urljoin(str(page.url), action), data={"prompt": prompt, **login})


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
