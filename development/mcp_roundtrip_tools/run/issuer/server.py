"""The HTTP endpoints of the local issuer. Its page, to choose a user and scopes, works without scripts."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from html import escape
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip.question_ui.controls import render_boxes, render_group
from mcp_roundtrip.question_ui.page import STYLE_SOURCE, render_document
from mcp_roundtrip_tools.client.http import CALL_CLIENT, LOCAL_USER
from mcp_roundtrip_tools.run.http.browser_protection import PAGE_HEADERS, refuse_cross_origin
from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from mcp_roundtrip_tools.run.http.server import listen_near
from mcp_roundtrip_tools.run.issuer.grants import (
    Grant,
    OneTimeGrants,
    RedirectedError,
    check_resource,
    read_request,
    redirect,
    register,
)
from mcp_roundtrip_tools.run.issuer.issuer import (
    LIFETIME_S,
    LocalIssuer,
    OAuthError,
    User,
    check_name,
    parse_scopes,
)

_SOURCE: Final = re.compile(r"[a-z][a-z0-9+.-]*:(?://[a-z0-9.:\[\]-]+)?", re.IGNORECASE)


def sign_in_page(request: Grant, issuer: LocalIssuer, given: Mapping[str, str]) -> Response:
    """Return the page for a request. `given` are its parameters, which the form sends again."""
    users, answered_at = issuer.users, _origin(request.redirect_uri)
    body = f"""\
<h1>Sign in to {escape(issuer.resource)}</h1>
<p><strong>{escape(request.client.name)}</strong> asks for access. The answer goes to \
<code>{escape(answered_at)}</code>.</p>
<p class="note">This is the local issuer of <code>make run</code>. It has no passwords: everyone who uses \
this computer may be any user. Its tokens are valid for this run only.</p>
<form method="post" action="/authorize">
{_hidden(given)}
{_users(users)}
{_scopes(users[0].default_scopes(request.scopes), request.scopes)}
<div class="actions"><button class="main" name="action" value="allow">Allow</button>
<button name="action" value="deny">Deny</button></div>
</form>"""
    return _page("Sign in", body, form_action=answered_at)


def error_page(code: str, description: str, location: str | None = None) -> Response:
    """Return the page for a refused request; its client gets the error only if the user opens `location`."""
    body = f"<h1>This request is refused</h1>\n<p><code>{escape(code)}</code>: {escape(description)}.</p>"
    if location is not None:
        body += f'\n<p><a href="{escape(location)}">Tell the client at {escape(_origin(location))}</a></p>'
    return _page("Refused", body, status=400)


def _hidden(given: Mapping[str, str]) -> str:
    return "\n".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in given.items()
    )


def _boxes(kind: str, name: str, texts: Iterable[str], chosen: Iterable[str]) -> str:
    """Return a box for each text, whose value is the text."""
    options = [(escape(text), text) for text in texts]
    return render_boxes(kind, name, options, {escape(text) for text in chosen})


def _users(users: Sequence[User]) -> str:
    boxes = _boxes("radio", "user", [each.name for each in users], [users[0].name])
    return render_group("user", "User", [], boxes, "")


def _scopes(selected: Iterable[str], requested: Iterable[str]) -> str:
    marked = {*selected}
    shown = sorted(marked | {*requested})
    if not shown:
        return '<p class="note">No scopes are requested.</p>'
    return render_group("granted", "Scopes", [], _boxes("checkbox", "granted", shown, marked), "")


def _origin(uri: str) -> str:
    """Return the origin of a redirect URI; of a URI of an application its scheme."""
    parts = urlsplit(uri)
    return (
        f"{parts.scheme}://{parts.netloc}"
        if parts.netloc and parts.scheme in ("http", "https")
        else f"{parts.scheme}:"
    )


def _page(title: str, body: str, *, status: int = 200, form_action: str = "") -> Response:
    # Browsers apply form-action to the redirect that answers a form, too.
    source = form_action if _SOURCE.fullmatch(form_action) else ""
    policy = (
        f"default-src 'none'; style-src {STYLE_SOURCE}; base-uri 'none'; form-action 'self' {source}; "
        "frame-ancestors 'none'"
    )
    headers = (
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", policy),
        *PAGE_HEADERS,
    )
    return Response(status, headers, render_document(title, body).encode())


CODE_LIFETIME_S: Final = 60

MAX_BODY: Final = 65_536

_CORS: Final = (
    # Clients in browsers read metadata and tokens; no cookie or address of theirs means anything here.
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "GET, POST, OPTIONS"),
    ("access-control-allow-headers", "*, authorization, content-type, mcp-protocol-version"),
)

_FIELDS_OF_PAGE: Final = frozenset({"user", "granted", "action"})


class IssuerServer:
    """Answers the requests to an issuer."""

    def __init__(self, issuer: LocalIssuer) -> None:
        self._issuer = issuer
        self._codes = OneTimeGrants(CODE_LIFETIME_S)

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if path in ("/authorize", "/"):
            return refuse_cross_origin(request, lambda origin: False) or self._page(path, request)
        if request.method == "OPTIONS":
            return Response(204, _CORS)
        try:
            if request.too_large:
                raise OAuthError("invalid_request", f"the body must have at most {MAX_BODY} bytes")
            answer = json_response(*self._document(request.method, path, request))
        except OAuthError as error:
            answer = json_response(400, {"error": error.code, "error_description": error.description})
        return Response(answer.status, (*answer.headers, ("cache-control", "no-store"), *_CORS), answer.body)

    def _document(self, method: str, path: str, request: Request) -> tuple[int, dict[str, Any]]:
        """Return the status and the document of a request by a program. Raises OAuthError."""
        match method, path:
            case "GET", "/.well-known/oauth-authorization-server" | "/.well-known/openid-configuration":
                return 200, self._metadata()
            case "GET", "/keys":
                return 200, self._issuer.key_set()
            case "POST", "/register":
                return 201, _register(request.body)
            case "POST", "/token":
                return 200, self._token(request)
        return 404, {"error": "not_found", "error_description": "no such endpoint"}

    def _metadata(self) -> dict[str, Any]:
        url = self._issuer.url
        scopes = sorted({scope for user in self._issuer.users for scope in user.scopes or ()})
        return {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "registration_endpoint": f"{url}/register",
            "jwks_uri": f"{url}/keys",
            **({"scopes_supported": scopes} if scopes else {}),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", LOCAL_USER],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _token(self, request: Request) -> dict[str, Any]:
        form = _parameters(request.body.decode(errors="replace"))
        match form.get("grant_type"):
            case "authorization_code":
                grant = self._codes.redeem(form.get("code", ""))
                grant.check_verifier(form.get("code_verifier", ""))
                if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
                    raise OAuthError("invalid_grant", "redirect_uri is not that of the authorization request")
                if form.get("client_id") != grant.client.id:
                    raise OAuthError("invalid_grant", "it was issued to another client")
                return self._access_token(form, grant.user, grant.scopes, grant.client.id)
            case str(name) if name == LOCAL_USER:
                if request.header("origin") or request.header("sec-fetch-site"):
                    raise OAuthError("unauthorized_client", "web pages use authorization_code")
                return self._sign_in(form)
            case "refresh_token":  # of an earlier version or another server; clients discard it for this code
                raise OAuthError("invalid_grant", "the issuer has no refresh tokens: sign in again")
            case None:
                raise OAuthError("invalid_request", "grant_type is missing: the body is a form (RFC 6749 §4)")
        raise OAuthError("unsupported_grant_type", "use authorization_code")

    def _sign_in(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Return a token for a program of this computer."""
        known = {user.name: user for user in self._issuer.users}
        user = known.get(form.get("user") or self._issuer.users[0].name)
        if user is None:  # probably misspelled
            raise OAuthError("invalid_request", f"the users of this run are {' and '.join(known)}")
        scopes = parse_scopes(form["scope"].split()) if "scope" in form else user.default_scopes(())
        return {**self._access_token(form, user.name, scopes, CALL_CLIENT), "user": user.name}

    def _access_token(
        self, form: Mapping[str, str], user: str, scopes: frozenset[str], client_id: str
    ) -> dict[str, Any]:
        check_resource(form, self._issuer)
        return {
            "access_token": self._issuer.token(user, scopes, client_id=client_id),
            "token_type": "Bearer",
            "expires_in": LIFETIME_S,
            "scope": " ".join(sorted(scopes)),
        }

    def _page(self, path: str, request: Request) -> Response:
        try:
            if path == "/authorize" and request.method == "GET":
                given = _parameters(request.target.partition("?")[2])
                asked = read_request(given, self._issuer)
                known = {name: value for name, value in given.items() if name not in _FIELDS_OF_PAGE}
                return sign_in_page(asked, self._issuer, known)
            if path == "/authorize" and request.method == "POST":
                return self._decide(request.body.decode(errors="replace"))
        except OAuthError as error:
            return error_page(error.code, error.description)
        except RedirectedError as error:
            if error.is_local:
                return _see(error.location)
            return error_page(error.cause.code, error.cause.description, error.location)
        return error_page("not_found", f"this is the token issuer of {self._issuer.resource}")

    def _decide(self, form: str) -> Response:
        pairs = parse_qsl(form, keep_blank_values=True)
        given = {name: value for name, value in pairs if name not in _FIELDS_OF_PAGE}
        asked = read_request(given, self._issuer)
        chosen = {name: value for name, value in pairs if name in _FIELDS_OF_PAGE}
        answer = {"error": "access_denied"}
        if chosen.get("action") == "allow":
            user = check_name(chosen.get("user", ""))
            scopes = parse_scopes(value for name, value in pairs if name == "granted")
            answer = {"code": self._codes.add(replace(asked, user=user, scopes=scopes))}
        return _see(redirect(asked.redirect_uri, self._issuer.url, asked.state, **answer))


def _register(body: bytes) -> dict[str, Any]:
    try:
        document = parse_json(body)
    except ValueError as error:
        raise OAuthError("invalid_client_metadata", f"the body is no JSON document: {error}") from None
    client = register(document)
    return {
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
    }


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
    with closing(listen_near(lambda request: endpoints.respond(request), port, MAX_BODY)) as server:
        issuer = LocalIssuer(server.url, users, resource)
        endpoints = IssuerServer(issuer)
        server.start()
        yield issuer
