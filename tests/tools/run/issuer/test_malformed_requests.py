from base64 import urlsafe_b64encode
from urllib.parse import urlencode

import httpx2
import pytest

from mcp_roundtrip_tools.run.issuer.issuer import User
from mcp_roundtrip_tools.run.issuer.server import MAX_BODY, serve_issuer

USERS = [User("ada")]
DEEP = b"[" * 30_000 + b"]" * 30_000


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
