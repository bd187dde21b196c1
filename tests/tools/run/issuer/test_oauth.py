import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import jwt
import pytest

from mcp_roundtrip_tools.client.http import LOCAL_USER
from mcp_roundtrip_tools.run.issuer.grants import Client, Grant, OneTimeGrants
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, User
from mcp_roundtrip_tools.run.issuer.server import MAX_BODY, serve_issuer
from support.html_form import BrowserForm

RESOURCE = "http://127.0.0.1:3000/mcp"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REDIRECT = "http://127.0.0.1:5000/callback"


@dataclass
class OAuthClient:
    """A client of an issuer, without anything that an SDK would check."""

    issuer: LocalIssuer
    http: httpx2.Client
    id: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> httpx2.Response:
        sent = {"content-type": "application/x-www-form-urlencoded", **headers}
        return self.http.post(f"{self.issuer.url}{path}", content=urlencode(form), headers=sent)

    def register(self, **document: Any) -> httpx2.Response:
        return self.http.post(f"{self.issuer.url}/register", content=json.dumps(document))

    def request(self, **changes: str | None) -> dict[str, str]:
        """Return the parameters of a valid authorization request, with changes; None removes one."""
        given = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "scope": "db:read db:write",
            "state": "s&t",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changes,
        }
        return {name: value for name, value in given.items() if value is not None}

    def show(self, **changes: str | None) -> httpx2.Response:
        return self.http.get(f"{self.issuer.url}/authorize?{urlencode(self.request(**changes))}")

    def decide(
        self, user: str = "ada", scopes: list[str] | None = None, **changes: str | None
    ) -> dict[str, str]:
        form = BrowserForm(self.show(**changes).text)
        form.choose("user", [user])
        if scopes is not None:
            form.choose("granted", scopes)
        answer = self.http.post(
            f"{self.issuer.url}/authorize",
            content=form.body("allow"),
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
        return received(answer)

    def redeem(self, given_code: str, /, **changes: str) -> httpx2.Response:
        form = {"grant_type": "authorization_code", "code": given_code, "code_verifier": VERIFIER}
        given = {**form, "client_id": self.id, "redirect_uri": REDIRECT, "resource": RESOURCE}
        return self.post("/token", {**given, **changes})


def received(answer: httpx2.Response) -> dict[str, str]:
    assert answer.status_code == 303, answer.text
    location = urlsplit(answer.headers["location"])
    assert f"{location.scheme}://{location.netloc}{location.path}" == REDIRECT
    return dict(parse_qsl(location.query))


def claims_of(response: httpx2.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return dict(jwt.decode(response.json()["access_token"], options={"verify_signature": False}))


@pytest.fixture(scope="module")
def client():
    users = [User("ada", frozenset({"db:read"})), User("bob")]
    with serve_issuer(users, lambda: RESOURCE) as issuer, httpx2.Client() as http:
        found = OAuthClient(issuer, http)
        found.id = found.register(client_name="<Test>", redirect_uris=[REDIRECT]).json()["client_id"]
        yield found


METADATA = ("oauth-authorization-server", "openid-configuration")


def test_a_code_becomes_a_token_with_the_chosen_user_and_scopes(client):
    answer = client.decide("bob", ["db:write"])
    assert (answer["state"], answer["iss"]) == ("s&t", client.issuer.url)
    response = client.redeem(answer["code"], resource=RESOURCE.replace("http:", "HTTP:"))  # the same
    claims = claims_of(response)
    assert (claims["sub"], claims["scope"], claims["aud"]) == ("bob", "db:write", RESOURCE)
    assert claims["client_id"] == client.id
    assert response.headers["cache-control"] == "no-store"


def test_the_page_selects_the_first_user_and_the_scopes_of_that_user(client):
    page = client.show()
    form = BrowserForm(page.text)
    fields = dict(parse_qsl(form.body("allow")))
    assert (fields["user"], fields["granted"]) == ("ada", "db:read")
    for shown in (form, BrowserForm(client.show(scope="db:write").text)):  # beside those of the user
        assert [each.attributes["value"] for each in shown.named("granted")] == ["db:read", "db:write"]
    assert "<strong>&lt;Test&gt;</strong>" in page.text
    assert "<code>http://127.0.0.1:5000</code>" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:5000;" in policy


def test_the_user_can_deny(client):
    answer = received(client.post("/authorize", {**client.request(), "user": "ada", "action": "deny"}))
    assert answer == {"error": "access_denied", "state": "s&t", "iss": client.issuer.url}


def test_scopes_of_openid_are_in_no_access_token(client):
    answer = client.decide(scope="openid offline_access db:read")
    assert claims_of(client.redeem(answer["code"]))["scope"] == "db:read"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"client_id": "another"}, "invalid_grant"),
        ({"redirect_uri": f"{REDIRECT}/"}, "invalid_grant"),
        ({"resource": "https://other.test/mcp"}, "invalid_target"),
        ({"code": "unknown"}, "invalid_grant"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        # With another code, the TypeScript SDK neither discards a stored token nor signs in again.
        ({"grant_type": "refresh_token", "refresh_token": "stored"}, "invalid_grant"),
        ({"grant_type": ""}, "invalid_request"),
    ],
)
def test_a_token_request_that_does_not_fit_its_code_is_refused(client, changes, error):
    code = client.decide()["code"]
    response = client.redeem(code, **changes)
    assert (response.status_code, response.json()["error"]) == (400, error)
    if changes.keys() == {"code_verifier"}:  # a code is used once
        assert client.redeem(code).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://other.test/mcp"}, "invalid_target"),
        ({"scope": 'a"b'}, "invalid_scope"),
    ],
)
def test_a_wrong_request_is_answered_to_the_client(client, changes, error):
    answer = received(client.show(**changes))
    assert (answer["error"], answer["state"], answer["iss"]) == (error, "s&t", client.issuer.url)


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "unknown"},
        {"client_id": "http://127.0.0.1:1/"},
        {"client_id": "http://example.com/client.json"},
        {"redirect_uri": "https://evil.test/callback"},
        {"redirect_uri": "http://127.0.0.1:5000/other"},
        {"redirect_uri": "http://user@127.0.0.1:5000/callback"},
        # Parsers drop these characters, and a header would end with them.
        {"redirect_uri": "http://127.0.0.1:5000/call\r\nback"},
        {"redirect_uri": "\r\nhttp://127.0.0.1:5000/callback"},
        {"redirect_uri": "http://127.0.0.1:5000/callback#"},
    ],
)
def test_a_request_of_an_unknown_client_is_never_redirected(client, changes):
    response = client.show(**changes)
    assert (response.status_code, "location" in response.headers) == (400, False)


def test_an_error_leads_to_a_page_elsewhere_only_if_the_user_goes_there(client):
    """Otherwise every page could register a client and use the issuer as an open redirector."""
    uri = "https://evil.test/callback?a=1"
    name = client.register(redirect_uris=[uri], client_name="a\u202eb").json()["client_id"]
    response = client.show(client_id=name, redirect_uri=uri, response_type="token")
    assert (response.status_code, "location" in response.headers) == (400, False)
    assert '<a href="https://evil.test/callback?a=1&amp;error=unsupported_response_type' in response.text
    assert "a\ufffdb" in client.show(client_id=name, redirect_uri=uri).text


def test_on_this_computer_every_port_of_a_redirect_uri_is_the_same(client):
    """RFC 8252 §7.3."""
    assert client.show(redirect_uri="http://127.0.0.1:61234/callback").status_code == 200


@pytest.mark.parametrize(
    "uri",
    ["javascript:alert(1)", "http://example.com/", "data:text/html,x", "https://a/#b", "https://a b/", ""],
)
def test_no_client_registers_an_unsafe_redirect_uri(client, uri):
    response = client.register(redirect_uris=[uri])
    assert (response.status_code, response.json()["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("uri", ["cursor://anysphere.cursor-mcp/callback", "https://claude.ai/callback"])
def test_applications_register_their_own_schemes_and_web_pages(client, uri):
    registered = client.register(redirect_uris=[uri], client_name="An application").json()
    page = client.show(client_id=registered["client_id"], redirect_uri=uri)
    assert page.status_code == 200
    assert f"form-action 'self' {uri.partition('/')[0]}" in page.headers["content-security-policy"]


def test_a_repeated_parameter_is_refused(client):
    query = f"{urlencode(client.request())}&client_id={client.id}"
    assert client.http.get(f"{client.issuer.url}/authorize?{query}").status_code == 400


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.test"}, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}],
)
def test_pages_of_other_sites_cannot_sign_in(client, headers):
    form = {**client.request(), "user": "ada", "action": "allow"}
    assert client.post("/authorize", form, **headers).status_code == 403
    local = client.post("/token", {"grant_type": LOCAL_USER}, **headers)
    assert local.json()["error"] == "unauthorized_client"
    assert client.http.get(client.issuer.url, headers={"host": "evil.test"}).status_code == 421


def test_a_program_of_this_computer_gets_a_token_without_a_page(client):
    first = client.post("/token", {"grant_type": LOCAL_USER})
    assert (claims_of(first)["sub"], claims_of(first)["scope"]) == ("ada", "db:read")
    other = client.post("/token", {"grant_type": LOCAL_USER, "user": "bob", "scope": "x"})
    assert (claims_of(other)["sub"], claims_of(other)["scope"]) == ("bob", "x")


@pytest.mark.parametrize("user", ["eve", "Ada", "ada ", "ada bob", "\x7f", "é" * 200])
def test_a_program_gets_no_token_for_a_user_who_does_not_exist(client, user):
    response = client.post("/token", {"grant_type": LOCAL_USER, "user": user})
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert "ada and bob" in response.json()["error_description"]


def test_clients_in_browsers_may_read_tokens_and_the_metadata_with_what_clients_must_verify(client):
    url, origin = client.issuer.url, {"origin": "http://localhost:6274"}
    documents = [client.http.get(f"{url}/.well-known/{name}") for name in METADATA]
    for answer in (client.http.options(f"{url}/token", headers=origin), *documents):
        assert answer.headers["access-control-allow-origin"] == "*"
    for document in (each.json() for each in documents):
        assert document["issuer"] == url
        assert "authorization_code" in document["grant_types_supported"]
        assert document["code_challenge_methods_supported"] == ["S256"]
        assert document["authorization_response_iss_parameter_supported"] is True


def test_if_the_port_is_in_use_or_above_the_last_one_the_issuer_selects_another_one(client):
    for port in (urlsplit(client.issuer.url).port or 0, 65_536):
        with serve_issuer([User("ada")], lambda: RESOURCE, port=port) as other:
            assert other.url != client.issuer.url


def test_several_users_sign_in_at_the_same_time():
    grants = OneTimeGrants(60)
    asked = Grant(Client("id", "name", ("http://127.0.0.1/",)), "http://127.0.0.1/", frozenset(), "", None)
    codes = {user: grants.add(replace(asked, user=user)) for user in ("ada", "bob")}
    assert {user: grants.redeem(code).user for user, code in codes.items()} == {"ada": "ada", "bob": "bob"}


DEEP = b"[" * 30_000 + b"]" * 30_000


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/register", DEEP, "invalid_client_metadata"),
        ("/register", b"[]", "invalid_client_metadata"),
        ("/register", b"1" * 5_000, "invalid_client_metadata"),
        ("/register", b" " * (MAX_BODY + 1), "invalid_request"),
        ("/token", DEEP, "invalid_request"),
        ("/token", b'{"grant_type": "authorization_code"}', "invalid_request"),
        ("/token", b"grant_type=password&grant_type=password", "invalid_request"),
        ("/token", b"=" * (MAX_BODY + 1), "invalid_request"),
    ],
)
def test_a_malformed_body_is_refused_with_the_code_of_its_specification(client, capfd, path, body, error):
    response = httpx2.post(f"{client.issuer.url}{path}", content=body)
    assert (response.status_code, response.json()["error"]) == (400, error)
    assert response.json()["error_description"]
    assert response.headers["cache-control"] == "no-store"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [DEEP, b"[1]", b'["x", "http://127.0.0.1/\\ud800"]', b"\xff"])
def test_a_client_id_with_malformed_contents_is_refused(client, capfd, content):
    client_id = "local-" + base64.urlsafe_b64encode(content).decode().rstrip("=")
    query = urlencode({"client_id": client_id, "response_type": "code"})
    if len(query) < 60_000:
        assert httpx2.get(f"{client.issuer.url}/authorize?{query}").status_code == 400
    form = {"client_id": client_id, "user": "ada", "action": "allow"}
    answer = httpx2.post(f"{client.issuer.url}/authorize", content=urlencode(form))
    assert answer.status_code == 400
    assert capfd.readouterr().err == ""
