"""A small OAuth 2.1 authorization server on 127.0.0.1. Every user is Alice and consents to everything.

It implements metadata (RFC 8414), registration (RFC 7591), the code grant with PKCE, client credentials, and
resource indicators (RFC 8707).
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

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
    scopes: list[str] = field(default_factory=list)
    """The scopes of each authorization request."""
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)

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
        routes: dict[str, Callable[[Request], Response]] = {
            f"/.well-known/oauth-authorization-server{PATH}": self._metadata,
            f"{PATH}/keys": lambda _: Response(200, body=jwks(*self.keys)),
            f"{PATH}/register": self._register,
            f"{PATH}/authorize": self._authorize,
            f"{PATH}/token": self._token,
        }
        return routes.get(path, _not_found)(request)

    def _metadata(self, request: Request) -> Response:
        return json_response(
            200,
            {
                "issuer": self.issuer,
                "jwks_uri": f"{self.issuer}/keys",
                "registration_endpoint": f"{self.issuer}/register",
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            },
        )

    def _register(self, request: Request) -> Response:
        registered = {"client_id": "app", "token_endpoint_auth_method": "none"}
        return json_response(201, {**json.loads(request.body), **registered})

    def _authorize(self, request: Request) -> Response:
        asked = dict(parse_qsl(urlsplit(request.target).query))
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        self.scopes.append(asked.get("scope", ""))
        back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        return Response(302, (("location", f"{asked['redirect_uri']}?{back}"),))

    def _token(self, request: Request) -> Response:
        form = dict(parse_qsl(request.body.decode()))
        if form["grant_type"] == "client_credentials":
            return self._token_of_a_machine(request, form)
        asked = self.codes.pop(form["code"])
        digest = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if asked["code_challenge"] != digest.decode() or asked["resource"] != form["resource"]:
            return json_response(400, {"error": "invalid_grant"})
        scope = asked.get("scope", "")
        token = self.token(form["resource"], scope=scope)
        return json_response(
            200, {"access_token": token, "token_type": "Bearer", "expires_in": 300, "scope": scope}
        )

    def _token_of_a_machine(self, request: Request, form: Mapping[str, str]) -> Response:
        if request.header("authorization") != f"Basic {MACHINE}":
            return json_response(401, {"error": "invalid_client", "error_description": "unknown client"})
        token = self.token(form["resource"], sub="app")
        return json_response(200, {"access_token": token, "token_type": "Bearer", "expires_in": 300})


def _not_found(request: Request) -> Response:
    return Response(404)


@contextmanager
def authorization_server(*keys: Key) -> Iterator[AuthorizationServer]:
    """Run an authorization server until the block ends."""
    found = AuthorizationServer(keys=list(keys) or [ONE])
    with closing(HttpServer(found.respond, max_body=65_536)) as listening:
        found.url = listening.url
        listening.start()
        yield found
