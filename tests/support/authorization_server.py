"""An authorization server on 127.0.0.1 without users: metadata (RFC 8414), keys, and client credentials.

Users sign in at the issuer of `make run`, and at a certified OpenID provider (tests/identity).
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.token_issuer import ONE, Key, claims, jwks

PATH = "/tenant"
MACHINE = b64encode(b"app:secret").decode()
"""The id and the secret of a client that signs in without a user."""


@dataclass
class AuthorizationServer:
    """An issuer that publishes `keys` and signs with the first. `documents` replace responses by path."""

    url: str = ""
    keys: list[Key] = field(default_factory=lambda: [ONE])
    documents: dict[str, Response] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def issuer(self) -> str:
        return self.url + PATH

    def token(self, resource: str, **changes: Any) -> str:
        """Return an access token for a resource. None removes a claim."""
        given = {"iss": self.issuer, "aud": resource, "scope": None, **changes}
        return self.keys[0].sign(claims(time.time(), **given), typ="at+jwt")

    def respond(self, request: Request) -> Response:
        path = urlsplit(request.target).path
        self.asked[path] += 1
        if path in self.documents:
            return self.documents[path]
        match path.removeprefix("/.well-known/oauth-authorization-server"):
            case "/tenant":
                return json_response(200, self._metadata())
            case "/tenant/keys":
                return Response(200, body=jwks(*self.keys))
            case "/tenant/token":
                return self._token(request)
        return Response(404)

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint": f"{self.issuer}/token",
            "code_challenge_methods_supported": ["S256"],
        }

    def _token(self, request: Request) -> Response:
        if request.header("authorization") != f"Basic {MACHINE}":
            return json_response(401, {"error": "invalid_client", "error_description": "unknown client"})
        form = dict(parse_qsl(request.body.decode()))
        token = self.token(form["resource"], sub="app")
        return json_response(200, {"access_token": token, "token_type": "Bearer", "expires_in": 300})


@contextmanager
def authorization_server() -> Iterator[AuthorizationServer]:
    found = AuthorizationServer()
    with closing(HttpServer(found.respond, max_body=65_536)) as listening:
        found.url = listening.url
        listening.start()
        yield found
