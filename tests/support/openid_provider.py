"""oidc-provider, a certified OpenID provider in a process of Node.js, and a person who signs in there."""

import re
import socket
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode, urljoin

import httpx2

from support import skips
from support.oauth_client import REDIRECT, User

PACKAGE = Path(__file__).parents[2] / ".cache/programs/node_modules/oidc-provider"
PROGRAM = Path(__file__).with_suffix(".mjs")

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


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
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
