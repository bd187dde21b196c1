"""The HTTP endpoints of the local issuer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import parse_qsl

from mcp_roundtrip.protocol.canonical import parse_json
from mcp_roundtrip_tools.client.http import LOCAL_USER
from mcp_roundtrip_tools.run.http.browser_protection import refuse_cross_origin
from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from mcp_roundtrip_tools.run.http.server import listen_near
from mcp_roundtrip_tools.run.issuer.authorization import (
    CODE_LIFETIME_S,
    REFRESH_LIFETIME_S,
    OneTimeGrants,
    RedirectedError,
    TokenEndpoint,
    read_request,
    redirect,
)
from mcp_roundtrip_tools.run.issuer.clients import OAuthError, register
from mcp_roundtrip_tools.run.issuer.issuer import ALGORITHM, LocalIssuer, User, check_name, check_scopes
from mcp_roundtrip_tools.run.issuer.page import error_page, sign_in_page, style_sheet

MAX_BODY: Final = 65_536

_CORS: Final = (
    # Clients in browsers read metadata and tokens; no cookie or address of theirs means anything here.
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "GET, POST, OPTIONS"),
    ("access-control-allow-headers", "*, authorization, content-type, mcp-protocol-version"),
)

_FIELDS_OF_PAGE: Final = frozenset({"user", "other_user", "granted", "action"})


class IssuerServer:
    """Answers the requests to an issuer."""

    def __init__(self, issuer: LocalIssuer) -> None:
        self._issuer = issuer
        self._codes = OneTimeGrants(CODE_LIFETIME_S)
        self._tokens = TokenEndpoint(issuer, self._codes, OneTimeGrants(REFRESH_LIFETIME_S))

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if path in ("/authorize", "/style.css", "/"):
            return (
                refuse_cross_origin(request, lambda origin: False)
                or _refuse_frames(request)
                or self._page(path, request)
            )
        routes: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("GET", "/.well-known/oauth-authorization-server"): self._metadata,
            ("GET", "/.well-known/openid-configuration"): self._metadata,
            ("GET", "/keys"): lambda _: json_response(200, self._issuer.signer.key_set()),
            ("POST", "/register"): self._register,
            ("POST", "/token"): self._token,
        }
        if request.method == "OPTIONS":
            return Response(204, _CORS)
        handler = routes.get((request.method, path))
        if handler is None:
            return json_response(404, {"error": "not_found", "error_description": "no such endpoint"})
        try:
            if request.too_large:
                raise OAuthError("invalid_request", f"the body must have at most {MAX_BODY} bytes")
            answer = handler(request)
        except OAuthError as error:
            answer = json_response(400, {"error": error.code, "error_description": error.description})
        return Response(answer.status, (*answer.headers, ("cache-control", "no-store"), *_CORS), answer.body)

    def _metadata(self, request: Request) -> Response:
        url = self._issuer.url
        scopes = sorted({scope for user in self._issuer.users for scope in user.scopes or ()})
        return json_response(
            200,
            {
                "issuer": url,
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
                "registration_endpoint": f"{url}/register",
                "jwks_uri": f"{url}/keys",
                **({"scopes_supported": scopes} if scopes else {}),
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token", LOCAL_USER],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True,
                "client_id_metadata_document_supported": True,
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [ALGORITHM],
            },
        )

    def _register(self, request: Request) -> Response:
        try:
            document = parse_json(request.body)
        except ValueError as error:
            raise OAuthError("invalid_client_metadata", f"the body is no JSON document: {error}") from None
        client = register(document)
        granted = {
            "client_id": client.id,
            "client_name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }
        return json_response(201, granted)

    def _token(self, request: Request) -> Response:
        headers = (request.header("origin"), request.header("sec-fetch-site"))
        form = _parameters(request.body.decode(errors="replace"))
        return json_response(200, self._tokens.respond(form, is_browser=any(headers)))

    def _page(self, path: str, request: Request) -> Response:
        if path == "/style.css":
            return style_sheet()
        try:
            if path == "/authorize" and request.method == "GET":
                return self._show(_parameters(request.target.partition("?")[2]))
            if path == "/authorize" and request.method == "POST":
                return self._decide(request.body.decode(errors="replace"))
        except OAuthError as error:
            return error_page(error.code, error.description)
        except RedirectedError as error:
            if error.is_local:
                return _see(error.location)
            return error_page(error.cause.code, error.cause.description, error.location)
        return error_page("not_found", f"this is the token issuer of {self._issuer.resource}")

    def _show(self, given: Mapping[str, str]) -> Response:
        request = read_request(given, self._issuer.url, self._issuer.resource)
        known = {name: value for name, value in given.items() if name not in _FIELDS_OF_PAGE}
        return sign_in_page(request, self._issuer.users, known)

    def _decide(self, form: str) -> Response:
        pairs = parse_qsl(form, keep_blank_values=True)
        given = {name: value for name, value in pairs if name not in _FIELDS_OF_PAGE}
        request = read_request(given, self._issuer.url, self._issuer.resource)
        chosen = {name: value for name, value in pairs if name in _FIELDS_OF_PAGE}
        answer = {"error": "access_denied"}
        if chosen.get("action") == "allow":
            try:
                user = check_name(chosen.get("other_user", "").strip() or chosen.get("user", ""))
                scopes = check_scopes(value for name, value in pairs if name == "granted")
            except ValueError as error:
                raise OAuthError("invalid_request", str(error)) from None
            answer = {"code": self._codes.add(request.grant(user, scopes))}
        return _see(redirect(request.redirect_uri, self._issuer.url, request.state, **answer))


def _refuse_frames(request: Request) -> Response | None:
    """Return the refusal of a page in a frame, before the metadata document of its client is fetched."""
    if request.header("sec-fetch-dest") in ("iframe", "frame", "embed", "object", "fencedframe"):
        return json_response(403, {"message": "the sign-in page opens in its own window"})
    return None


def _parameters(text: str) -> dict[str, str]:
    """Return the parameters of a query or a form. Raises OAuthError if one is repeated (RFC 6749 §3.1)."""
    pairs = [(name, value) for name, value in parse_qsl(text, keep_blank_values=True) if value]
    found = dict(pairs)
    if len(found) != len(pairs):
        raise OAuthError("invalid_request", "a parameter is repeated")
    return found


def _see(location: str) -> Response:
    headers = (("location", location), ("cache-control", "no-store"), ("referrer-policy", "no-referrer"))
    return Response(303, headers)


@contextmanager
def serve_issuer(
    users: Sequence[User], resource: Callable[[], str], *, port: int = 0
) -> Iterator[LocalIssuer]:
    """Run an issuer for an endpoint until the block ends. If `port` is in use, another one is selected."""
    respond: list[Callable[[Request], Response]] = []
    with closing(listen_near(lambda request: respond[0](request), port, MAX_BODY)) as server:
        issuer = LocalIssuer(server.url, users, resource)
        respond.append(IssuerServer(issuer).respond)
        server.start()
        yield issuer
