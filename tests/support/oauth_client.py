"""The official Python client, with its own OAuth flow and a user who consents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from support.html_form import BrowserForm

REDIRECT = "http://127.0.0.1:1/callback"

WITHIN_S: Final = 60.0
"""How long a client waits: on a busy machine, functions start slowly."""


@dataclass
class MemoryTokenStorage:
    """The token store of the client, in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class User:
    """A user who signs in at the issuer of `make run`, and consents to everything that a client asks for.

    `scopes` has those of each authorization request, and `pages` the forms that the user saw.
    """

    name: str = "alice"
    scopes: list[str] = field(default_factory=list)
    pages: list[BrowserForm] = field(default_factory=list)

    async def open(self, url: str) -> None:
        """Open the authorization URL, sign in, and note what the redirect URI receives."""
        self.scopes.append(dict(parse_qsl(urlsplit(url).query)).get("scope", ""))
        async with httpx2.AsyncClient() as browser:
            response = await self.sign_in(browser, url)
        target = response.headers["location"]
        assert target.startswith(REDIRECT)
        self.query = dict(parse_qsl(urlsplit(target).query))

    async def sign_in(self, browser: httpx2.AsyncClient, url: str) -> httpx2.Response:
        """Return the response that redirects to the client."""
        form = BrowserForm((await browser.get(url)).text)
        self.pages.append(form)
        form.choose("user", [self.name])
        sent = {"content-type": "application/x-www-form-urlencoded", "origin": "null"}
        return await browser.post(
            urljoin(url, form.form.attributes["action"] or ""),
            content=form.body("allow"),
            headers={**sent, "sec-fetch-site": "same-origin"},
        )

    async def code(self) -> AuthorizationCodeResult:
        """Return what the redirect URI received."""
        return AuthorizationCodeResult(**self.query)


@asynccontextmanager
async def signed_in_client(
    url: str, storage: MemoryTokenStorage, mode: str = "auto", browser: User | None = None
) -> AsyncIterator[Client]:
    """Return a client that obtains a token when the server demands one."""
    browser = browser or User()
    metadata = OAuthClientMetadata(client_name="test", redirect_uris=[AnyUrl(REDIRECT)])
    auth = OAuthClientProvider(url, metadata, storage, browser.open, browser.code)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=WITHIN_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client
