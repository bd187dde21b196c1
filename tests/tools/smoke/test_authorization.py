import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.smoke.checked_endpoint import Finding
from mcp_roundtrip_tools.smoke.run import Call, Settings
from support.authorization_server import authorization_server
from support.scripted_server import Reply, respond, scripted
from support.served_application import FRONT_DOOR, TEMPLATE, serve, unused_ports
from tools.smoke.conftest import findings_of

WEATHER = Call("get_weather", {"location": "Hyderabad"})
METADATA = "/.well-known/oauth-authorization-server/tenant"


@pytest.fixture(scope="module")
def served():
    port = next(unused_ports())
    url = f"http://127.0.0.1:{port}{FRONT_DOOR}"
    with authorization_server() as issuer:
        parameters = {"AuthMode": "bearer", "TokenIssuer": issuer.issuer, "Platform.EndpointUri": url}
        with serve(TEMPLATE, port=port, parameters=parameters):
            yield SimpleNamespace(url=url, issuer=issuer)


@pytest.fixture
def running(served):
    """Return the application, whose issuer has no documents of earlier tests."""
    served.issuer.documents.clear()
    return served


def test_every_check_of_a_correct_endpoint_with_a_token_is_ok(running):
    found = findings_of(Settings(running.url, token=running.issuer.token(running.url), call=WEATHER))
    assert list(found) == [
        *("anonymous", "metadata", "issuer", "token", "discovery", "tools", "function", "call"),
    ]
    assert {each.status for each in found.values()} == {"ok"}


def test_a_machine_signs_in_with_its_client_credentials(running):
    client = Settings(running.url, client_id="app", client_secret="secret", issuer=running.issuer.issuer)
    found = findings_of(replace(client, call=WEATHER))
    assert {each.status for each in found.values()} == {"ok"}
    assert "sign-in" in found
    refused = findings_of(replace(client, client_secret="wrong"))["sign-in"]
    assert (refused.status, "unknown client" in refused.text) == ("wrong", True)


def test_a_refused_token_leads_to_the_log(running):
    for token in (running.issuer.token(running.url, exp=1), "opaque"):
        found = findings_of(Settings(running.url, token=token))
        assert list(found)[-1] == "token"
        assert "log event unauthorized" in found["token"].text


ISSUERS: dict[str, tuple[Response, str, str]] = {
    "no metadata": (Response(404), "wrong", "has no metadata"),
    "another name": (Response(200, body=b'{"issuer": "https://o.example"}'), "wrong", "correct TokenIssuer"),
    "no PKCE": (Response(200, body=b"{}"), "note", "PKCE with S256"),
}


@pytest.mark.parametrize(("document", "status", "text"), ISSUERS.values(), ids=ISSUERS)
def test_an_authorization_server_at_which_clients_cannot_sign_in_is_described(
    running, document, status, text
):
    if document.body == b"{}":
        document = Response(200, body=json.dumps({"issuer": running.issuer.issuer}).encode())
    running.issuer.documents[METADATA] = document
    found = findings_of(Settings(running.url))
    assert found["issuer"].status == status
    assert text in found["issuer"].text


def test_an_authorization_server_with_a_malformed_url_publishes_no_metadata():
    with scripted() as server:
        resource = {"resource": f"{server.url}/mcp", "authorization_servers": ["https://[x"]}
        server.script += [refusal(), respond(200, resource)]
        assert findings_of(Settings(f"{server.url}/mcp"))["issuer"].status == "wrong"


def with_secret(running, issuer, token_endpoint):
    """Return the last finding if the authorization server has this metadata, and the client a secret."""
    document = {"issuer": issuer, "token_endpoint": token_endpoint}
    running.issuer.documents[METADATA] = Response(200, body=json.dumps(document).encode())
    client = Settings(running.url, client_id="app", client_secret="secret", issuer=issuer)
    return [*findings_of(client).values()][-1]


def test_the_secret_of_a_client_is_only_sent_over_https_and_to_its_issuer(running):
    for url in ("http://id.example/token", "file:///etc/passwd", "ftp://id.example/", ""):
        found = with_secret(running, running.issuer.issuer, url)
        assert (found.check, found.status) == ("sign-in", "wrong"), url
        assert "https://" in found.text, url
    with scripted(respond(200, {"access_token": "x"})) as server:
        assert with_secret(running, "https://other.example", f"{server.url}/token").check == "issuer"
        assert server.requests == []


def test_the_secret_of_a_client_is_not_sent_to_an_authorization_server_that_the_endpoint_chose():
    with scripted() as server:
        resource = {"resource": f"{server.url}/mcp", "authorization_servers": [server.url]}
        issuer = {"issuer": server.url, "token_endpoint": f"{server.url}/token"}
        server.script += [refusal(), respond(200, resource), respond(200, issuer)]
        client = Settings(
            f"{server.url}/mcp", client_id="app", client_secret="secret", issuer="https://id.example"
        )
        found = findings_of(client)
        assert "/token" not in [each.target for each in server.requests]
    assert found["issuer"].status != "wrong"
    assert found["sign-in"].status == "wrong"


@pytest.mark.parametrize("token", [None, "t"])
def test_the_secret_of_a_client_is_not_sent_for_a_token_of_another_resource(token):
    with scripted() as server:
        resource = {"resource": "https://bank.example/mcp", "authorization_servers": [server.url]}
        issuer = {"issuer": server.url, "token_endpoint": f"{server.url}/token"}
        server.script += [refusal(), respond(200, resource), respond(200, issuer)]
        client = Settings(f"{server.url}/mcp", token, "app", "secret", server.url)
        found = findings_of(client)
        assert "/token" not in [each.target for each in server.requests]
    assert found["metadata"].status == "wrong"


def test_a_text_of_a_server_begins_no_line():
    assert len(str(Finding("call", "wrong", "x\n::error::y\r\u2028z")).splitlines()) == 1


def refusal(**headers: str) -> Reply:
    return respond(401, {"message": "Unauthorized"}, **headers)


def test_a_renamed_challenge_is_noted_and_its_metadata_found():
    with scripted() as server:
        document = {"resource": f"{server.url}/mcp", "authorization_servers": ["https://id.invalid"]}
        challenge = f'Bearer resource_metadata="{server.url}/metadata"'
        server.script += [refusal(x_amzn_remapped_www_authenticate=challenge), respond(200, document)]
        found = findings_of(Settings(f"{server.url.replace('http:', 'HTTP:')}/mcp"))
        assert server.requests[1].target == "/metadata"
    assert found["anonymous"].status == "note"
    assert "x-amzn-remapped-www-authenticate" in found["anonymous"].text
    assert found["metadata"].status == "ok"


def test_without_a_challenge_the_metadata_is_looked_for_at_both_well_known_urls():
    with scripted(refusal(), respond(404, b""), respond(404, b"")) as server:
        found = findings_of(Settings(f"{server.url}/mcp"))
        assert [each.target for each in server.requests[1:]] == [
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource",
        ]
    assert (found["anonymous"].status, found["metadata"].status) == ("note", "note")


def test_metadata_that_is_missing_or_names_another_endpoint_is_wrong():
    document = {"resource": "https://other.example/mcp", "authorization_servers": ["https://id.invalid"]}
    with scripted(refusal(), respond(200, document)) as server:
        found = findings_of(Settings(f"{server.url}/mcp"))["metadata"]
    assert (found.status, "set EndpointUri" in found.text) == ("wrong", True)
    with scripted() as server:
        challenge = f'Bearer resource_metadata="{server.url}/metadata"'
        server.script += [refusal(WWW_Authenticate=challenge), respond(404, b"")]
        assert findings_of(Settings(f"{server.url}/mcp"))["metadata"].status == "wrong"


REFUSED: dict[str, tuple[Reply, str]] = {
    "scopes": (
        respond(403, {}, WWW_Authenticate='Bearer error="insufficient_scope", scope="a b"'),
        "of: a b",
    ),
    "the token, by API Gateway": (
        respond(401, {}, WWW_Authenticate='Bearer error="invalid_token", error_description="it has expired"'),
        "(401: it has expired)",
    ),
    "keys of the issuer": (
        respond(503, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "later"}}),
        "issuer_unavailable",
    ),
}


@pytest.mark.parametrize(("reply", "text"), REFUSED.values(), ids=REFUSED)
def test_what_a_token_cannot_do_is_named(reply, text):
    with scripted(refusal(), respond(404, b""), respond(404, b""), reply) as server:
        found = findings_of(Settings(f"{server.url}/mcp", token="opaque"))
    assert text in found["token"].text


def test_requests_are_signed_for_iam(monkeypatch):
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(name, value)
    with scripted(respond(403, {"message": "Forbidden"}), respond(404, {})) as server:
        findings_of(Settings(f"{server.url}/mcp", iam=True))
        anonymous, signed = server.requests[:2]
    assert anonymous.header("authorization") is None
    signature = signed.header("authorization") or ""
    assert "/eu-west-1/execute-api/aws4_request" in signature


def test_iam_without_a_region_is_refused_with_the_setting(monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert "AWS_REGION" in findings_of(Settings("https://t.invalid/mcp", iam=True))["url"].text
