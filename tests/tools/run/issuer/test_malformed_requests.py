import json
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip_tools.client.http import LOCAL_USER
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, User
from mcp_roundtrip_tools.run.issuer.server import MAX_BODY, IssuerServer, serve_issuer
from support.json_values import any_json

USERS = [User("ada")]
DEEP = b"[" * 30_000 + b"]" * 30_000
CODES = {
    "invalid_client_metadata",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_client",
    "invalid_scope",
}
CODES |= {"invalid_grant", "invalid_target", "unsupported_grant_type", "unauthorized_client"}


@pytest.fixture(scope="module")
def issuer():
    with serve_issuer(USERS, lambda: "http://127.0.0.1:3000/mcp") as running:
        yield running


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
def test_a_malformed_body_is_refused_with_the_code_of_its_specification(issuer, capfd, path, body, error):
    response = httpx2.post(f"{issuer.url}{path}", content=body)
    assert (response.status_code, response.json()["error"]) == (400, error)
    assert response.json()["error_description"]
    assert response.headers["cache-control"] == "no-store"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [DEEP, b"[1]", b'["x", "http://127.0.0.1/\\ud800"]', b"\xff"])
def test_a_client_id_with_malformed_contents_is_refused(issuer, capfd, content):
    client_id = "local-" + urlsafe_b64encode(content).decode().rstrip("=")
    query = urlencode({"client_id": client_id, "response_type": "code"})
    if len(query) < 60_000:
        assert httpx2.get(f"{issuer.url}/authorize?{query}").status_code == 400
    form = {"client_id": client_id, "user": "ada", "action": "allow"}
    answer = httpx2.post(f"{issuer.url}/authorize", content=urlencode(form))
    assert answer.status_code == 400
    assert capfd.readouterr().err == ""


JSON = any_json()
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "client_name": JSON,
        "redirect_uris": JSON
        | st.lists(st.text() | st.sampled_from(["https://a.test/b", "http://[::1", "a:b"])),
    },
)
GRANTS = st.sampled_from(["authorization_code", LOCAL_USER, "password"])
NAMES = ["code", "code_verifier", "user", "scope", "resource", "client_id", "redirect_uri"]
FORMS = st.builds(
    lambda grant, members: urlencode({"grant_type": grant, **members}, errors="surrogatepass"),
    GRANTS,
    st.dictionaries(st.sampled_from(NAMES), st.text()),
)
BODIES = st.binary() | METADATA.map(lambda value: json.dumps(value).encode()) | FORMS.map(str.encode)
SERVER = IssuerServer(LocalIssuer("http://127.0.0.1:3001", USERS, lambda: "http://127.0.0.1:3000/mcp"))


@given(st.sampled_from(["/register", "/token"]), BODIES)
def test_every_body_is_granted_or_refused_with_a_code_of_oauth(path, body):
    response = SERVER.respond(Request("POST", path, (), body))
    document: dict[str, Any] = json.loads(response.body)
    assert response.status in (200, 201, 400)
    assert response.status != 400 or document["error"] in CODES
