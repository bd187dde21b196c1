"""The endpoint over HTTP: the order of the checks, the statuses, and the limit of a body."""

import json
from base64 import b64encode

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.protocol.http import MAX_BODY_BYTES
from support.client_requests import refused
from support.deployment import Deployment
from support.event_sources import response_of
from support.messages import http_event, message
from support.servers import server_of

client = Deployment(Server("test"), user=None, source="http_api")


def test_a_foreign_origin_is_forbidden_before_any_other_check_and_an_allowed_or_missing_one_is_accepted():
    response = client.send("not json", http_method="GET", Origin="https://evil.test")
    assert response.status == 403
    assert "id" not in json.loads(response.body)
    open_client = client.by(replaced_settings={"allowed_origins": frozenset({"https://good.test"})})
    for origin in (None, "https://good.test"):
        assert open_client.send(message("tools/list"), origin=origin).status == 200
    for origin in ("null", "", "https://good.test, https://good.test"):
        assert open_client.send(message("tools/list"), origin=origin).status == 403


@pytest.mark.parametrize(
    ("method", "auth", "status"),
    [("GET", AuthMode.JWT, 405), ("POST", AuthMode.JWT, 401), ("POST", AuthMode.NONE, 400)],
)
def test_an_unreadable_body_is_refused_after_the_http_method_and_the_caller(method, auth, status):
    event = http_event("!!!", method=method, base64=True)
    assert response_of(client.by(mode=auth).invoke(event)).status == status


@pytest.mark.parametrize("version", [PROTOCOL_VERSION, f" {PROTOCOL_VERSION} ", None])
def test_a_notification_is_accepted_without_a_body(version):
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    response = client.send(body, mcp_protocol_version=version)
    assert (response.status, response.body) == (202, "")


@pytest.mark.parametrize(
    ("coding", "status"), [("identity", 200), ("Identity", 200), ("", 200), ("gzip", 415)]
)
def test_only_a_body_without_a_content_coding_is_read(coding, status):
    assert client.send(message("tools/list"), content_encoding=coding).status == status


def test_an_error_in_the_library_is_an_internal_error_with_a_correlation_id():
    def asks(ctx: Context) -> str:
        return ctx.elicit("q", "?", str)

    faulty = Deployment(server_of(asks), replaced_settings={"max_rounds": None})
    response = faulty.request("tools/call", name="asks", id=7)
    answer = json.loads(response.body)
    assert (refused(response), answer["id"]) == ((200, -32603), 7)
    assert "TypeError" not in answer["error"]["message"]
    assert faulty.failures == ["internal_error"]


def test_the_body_limit_counts_decoded_bytes():
    assert client.send("x" * (MAX_BODY_BYTES + 1)).status == 413
    text = "\u4e16" * (MAX_BODY_BYTES // 3 + 1)
    assert len(text) < MAX_BODY_BYTES
    assert client.send(text).status == 413
    event = http_event(b64encode(text.encode()).decode(), base64=True)
    assert response_of(client.invoke(event)).status == 413
