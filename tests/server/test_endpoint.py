"""The endpoint over HTTP: order of checks, status codes, and error replies."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.http import MAX_BODY_BYTES
from mcp_roundtrip_testing import Player
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from support.messages import META, call, headers, http_event, message

OBSERVER = RecordingObserver()
server = Server("test", instructions="Ask away.", ports=lambda: make_ports(observer=OBSERVER))


@server.tool
def hello() -> str:
    """Say hello."""
    return "hello"


@server.tool(title="Echo", annotations={"readOnlyHint": True}, meta={"com.example/x": 1})
def echo(ctx: Context, text: str) -> str:
    """Repeat a text.

    Args:
        text: The text to repeat.
    """
    ctx.progress(1)
    return text


def post(event: dict[str, Any], on: Server = server) -> tuple[int, Any]:
    response = on.lambda_handler(event, None)
    body = response["body"]
    return response["statusCode"], json.loads(body) if body else None


def code(outcome: tuple[int, Any]) -> tuple[int, int]:
    status, body = outcome
    return status, body["error"]["code"]


# -- discovery and lists ----------------------------------------------------------------------------------


def test_discovery_names_versions_capabilities_and_instructions() -> None:
    status, body = post(http_event(message("server/discover")))
    assert status == 200
    assert body["result"] == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "logging": {}},
        "instructions": "Ask away.",
        "ttlMs": 300_000,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1.0.0"}},
    }


def test_tools_are_listed_in_the_order_of_their_declaration_with_caching_hints() -> None:
    _, body = post(http_event(message("tools/list")))
    result = body["result"]
    # `echo` may ask, so its definition depends on what the client declared.
    assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (300_000, "private", "complete")
    assert result["tools"] == [
        {
            "name": "hello",
            "description": "Say hello.",
            "inputSchema": {"type": "object", "additionalProperties": False},
        },
        {
            "name": "echo",
            "description": "Repeat a text.",
            "inputSchema": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"text": {"type": "string", "description": "The text to repeat."}},
                "required": ["text"],
            },
            "title": "Echo",
            "annotations": {"readOnlyHint": True},
            "_meta": {"com.example/x": 1},
        },
    ]


def test_a_cursor_that_the_server_did_not_issue_is_invalid() -> None:
    assert code(post(http_event(message("tools/list", cursor="x")))) == (400, -32602)


def test_a_response_is_a_single_line() -> None:
    response = server.lambda_handler(http_event(message("tools/list")), None)
    assert "\n" not in response["body"]
    assert response["headers"]["content-type"] == "application/json"


# -- before the body --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"])
def test_only_post_is_accepted(method: str) -> None:
    response = server.lambda_handler(http_event("", method=method), None)
    assert response["statusCode"] == 405
    assert response["headers"]["allow"] == "POST"


def test_a_foreign_origin_is_forbidden_before_any_other_check() -> None:
    event = http_event("not json", method="GET", headers={"Origin": "https://evil.test"})
    status, body = post(event)
    assert status == 403
    assert "id" not in body


def test_an_allowed_origin_and_a_missing_origin_are_accepted() -> None:
    ports = make_ports(allowed_origins=frozenset({"https://good.test"}))
    open_server = Server("x", ports=lambda: ports)
    body = message("tools/list")
    assert post(http_event(body), open_server)[0] == 200
    assert (
        post(http_event(body, headers={**headers(body), "origin": "https://good.test"}), open_server)[0]
        == 200
    )
    for origin in ("null", "", "https://good.test, https://good.test"):
        assert post(http_event(body, headers={**headers(body), "origin": origin}), open_server)[0] == 403


def test_an_unauthenticated_caller_is_refused_before_the_body_is_read() -> None:
    ports = make_ports(auth=EventAuthenticator(AuthMode.JWT))
    closed = Server("x", ports=lambda: ports)
    response = closed.lambda_handler(http_event("not json"), None)
    assert response["statusCode"] == 401
    assert "www-authenticate" in response["headers"]


def test_a_body_over_the_limit_is_refused_unread() -> None:
    assert post(http_event("x" * (MAX_BODY_BYTES + 1)))[0] == 413


def test_an_invalid_base64_body_is_a_parse_error() -> None:
    assert code(post(http_event("%%%", base64=True))) == (400, -32700)


def test_a_base64_body_is_read() -> None:
    body = message("tools/list")
    encoded = b64encode(json.dumps(body).encode()).decode()
    assert post(http_event(encoded, headers=headers(body), base64=True))[0] == 200


# -- the body ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", -32700),
        ("{", -32700),
        ("NaN", -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":NaN}}', -32700),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', -32700),
        ("[" * 10_000, -32700),
        ('{"a":' * 200 + "1" + "}" * 200, -32700),
        ("[]", -32600),
        (json.dumps([message("tools/list")]), -32600),
        ("null", -32600),
        ("3", -32600),
        ('"x"', -32600),
        ("{}", -32600),
        (json.dumps(message("tools/list", id=None)), -32600),
        (json.dumps(message("tools/list", id=1.5)), -32600),
        (json.dumps(message("tools/list", id=[1])), -32600),
        ('{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
def test_a_body_that_is_not_a_message_is_refused(body: str, expected: int) -> None:
    assert code(post(http_event(body, headers=headers(message("tools/list"))))) == (400, expected)


def test_a_notification_is_accepted_without_a_body() -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert post(http_event(body, headers={})) == (202, None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mcp_method": "tools/call"}, -32020),
        ({"mcp_method": None}, -32020),
        ({"mcp_protocol_version": None}, -32020),
        ({"mcp_protocol_version": "2025-06-18"}, -32020),
    ],
)
def test_missing_and_mismatching_headers_are_refused(changes: dict[str, str | None], expected: int) -> None:
    body = message("tools/list")
    assert code(post(http_event(body, headers=headers(body, **changes)))) == (400, expected)


def test_header_names_are_case_insensitive() -> None:
    body = message("tools/list")
    event = http_event(body, headers={name.upper(): value for name, value in headers(body).items()})
    assert post(event)[0] == 200


@pytest.mark.parametrize(
    "method",
    [
        "unknown/method",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "initialize",
        "tasks/get",
        "prompts/list",
    ],
)
def test_an_unknown_method_is_not_found_and_echoes_the_id(method: str) -> None:
    status, body = post(http_event(message(method, id="mine")))
    assert (status, body["error"]["code"], body["id"]) == (404, -32601, "mine")


def test_a_body_with_a_content_coding_is_an_unsupported_media_type() -> None:
    body = call("echo", {"text": "x"})
    event = http_event(body, headers=headers(body, **{"content-encoding": "gzip"}))
    response = server.lambda_handler(event, None)
    assert (response["statusCode"], response["headers"]["accept-encoding"]) == (415, "identity")
    event = http_event(body, headers=headers(body, **{"content-encoding": "identity"}))
    assert server.lambda_handler(event, None)["statusCode"] == 200


def test_an_unknown_tool_is_invalid_params() -> None:
    assert code(post(http_event(call("no_such_tool")))) == (400, -32602)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", None])
def test_initialize_gets_the_supported_versions_if_legacy_clients_are_not_served(
    version: str | None,
) -> None:
    modern = Server("modern", legacy_clients=False, ports=make_ports)
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    given = {} if version is None else {"mcp-protocol-version": version}
    response = modern.lambda_handler(http_event(body, headers=given), None)
    error = json.loads(response["body"])["error"]
    assert (response["statusCode"], error["code"]) == (400, -32022)
    assert error["data"]["supported"] == ["2026-07-28"]
    assert "2026-07-28" in error["message"]


# -- answers ----------------------------------------------------------------------------------------------


def test_notifications_are_sent_as_an_event_stream_that_ends_with_the_response() -> None:
    body = call("echo", {"text": "x"}, meta={**META, "progressToken": "t"})
    response = server.lambda_handler(http_event(body), None)
    assert response["headers"]["content-type"] == "text/event-stream"
    events = [json.loads(line[6:]) for line in response["body"].splitlines() if line]
    assert [event.get("method") for event in events] == ["notifications/progress", None]
    assert events[-1]["result"]["content"][0]["text"] == "x"


def test_a_client_that_accepts_no_event_stream_gets_only_the_response() -> None:
    body = call("echo", {"text": "x"}, meta={**META, "progressToken": "t"})
    event = http_event(body, headers=headers(body, accept="application/json"))
    assert post(event)[1]["result"]["content"][0]["text"] == "x"


def test_a_lone_surrogate_in_an_argument_is_a_tool_error_and_other_text_is_accepted() -> None:
    status, body = post(http_event(call("echo", {"text": "\ud800"})))
    assert (status, body["result"]["isError"]) == (200, True)
    _, body = post(http_event(call("echo", {"text": "é 世界"})))
    assert body["result"]["content"][0]["text"] == "é 世界"


def test_a_name_with_a_lone_surrogate_is_an_unknown_tool() -> None:
    assert code(post(http_event(call("\ud800"), headers=headers(call("x"))))) == (400, -32020)


def test_an_error_in_the_library_is_an_internal_error_with_a_correlation_id() -> None:
    observer = RecordingObserver()
    ports = make_ports(observer=observer)
    broken = Server("x", ports=lambda: replace(ports, config=replace(ports.config, max_rounds=None)))  # type: ignore[arg-type]  # the fault

    @broken.tool
    def asks(ctx: Context) -> str:
        return ctx.elicit("q", "?", str)

    status, body = post(http_event(call("asks")), broken)
    assert (status, body["error"]["code"], body["id"]) == (200, -32603, 1)
    assert "TypeError" not in body["error"]["message"]
    assert [event for event, _ in observer.failures] == ["internal_error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | JSON,
            "id": st.integers() | JSON,
            "method": st.sampled_from(["tools/call", "tools/list", "server/discover"]) | JSON,
            "params": st.fixed_dictionaries(
                {"_meta": st.just(dict(META)) | JSON},
                optional={
                    "name": st.just("echo") | JSON,
                    "arguments": st.just({"text": "x"}) | JSON,
                    "inputResponses": JSON,
                    "requestState": JSON,
                },
            )
            | JSON,
        },
    ),
    st.booleans(),
)
def test_any_body_gets_a_json_rpc_response_with_a_status_below_500(body: Any, mirrored: bool) -> None:
    params = body.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    event = http_event(
        json.dumps(body),
        headers=headers(
            message(body["method"] if isinstance(body.get("method"), str) else "tools/list"),
            mcp_name=name if isinstance(name, str) and name.isascii() else None,
        )
        if mirrored
        else {},
    )
    response = server.lambda_handler(event, None)
    assert response["statusCode"] < 500
    if response["statusCode"] != 202:
        answer = json.loads(response["body"])
        assert ("result" in answer) != ("error" in answer)


# -- limits and other details -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "auth", "status"),
    [
        (http_event("!!!", headers={"origin": "https://evil.test"}, base64=True), AuthMode.NONE, 403),
        (http_event("!!!", method="GET", base64=True), AuthMode.NONE, 405),
        (http_event("!!!", base64=True), AuthMode.JWT, 401),
        (http_event("!!!", base64=True), AuthMode.NONE, 400),
    ],
)
def test_an_unreadable_body_does_not_change_the_order_of_checks(
    event: dict[str, Any], auth: AuthMode, status: int
) -> None:
    ports = make_ports(auth=EventAuthenticator(auth))
    assert post(event, Server("x", ports=lambda: ports))[0] == status


def test_the_body_limit_counts_decoded_bytes() -> None:
    text = "\u4e16" * (MAX_BODY_BYTES // 3 + 1)
    assert len(text) < MAX_BODY_BYTES
    assert post(http_event(text))[0] == 413
    assert post(http_event(b64encode(text.encode()).decode(), base64=True))[0] == 413


@pytest.mark.parametrize("base64", [False, True])
def test_a_refused_body_is_logged_with_the_limit_and_its_setting(base64: bool) -> None:
    observer = RecordingObserver()
    ports = make_ports(observer=observer)
    config = replace(ports.config, max_body_bytes=2_000, max_json_values=100)
    small = Server("x", ports=lambda: replace(ports, config=config))
    limits = {"2000 bytes": "MCP_MAX_BODY_BYTES", "100 JSON values": "MCP_MAX_JSON_VALUES"}
    for padding, limit in ((["x" * 2_000], "2000 bytes"), ([0] * 100, "100 JSON values")):
        text = json.dumps(message("tools/list", padding=padding))
        body = b64encode(text.encode()).decode() if base64 else text
        status, answer = post(http_event(body, base64=base64), small)
        assert (status, answer["error"]["code"]) == (413, -32600)
        assert f"more than {limit}" in answer["error"]["message"]
        assert observer.events[-1][1]["setting"] == limits[limit]
    plain = message("tools/list", padding=",[{" * 100)
    assert post(http_event(plain), small)[0] == 200


@pytest.mark.parametrize("id", ["x" * 1_025, "\ud800", '"' * 2_000_000, 10**1_024])
def test_an_id_that_cannot_be_echoed_is_refused(id: Any) -> None:  # noqa: A002 - JSON-RPC's name
    status, body = post(http_event(message("tools/list", id=id)))
    assert (status, body["error"]["code"]) == (400, -32600)
    assert "id" not in body


def test_a_name_in_an_error_message_is_truncated() -> None:
    long = "x" * 1_000_000
    for body in (call(long), call("echo", {"text": "x", long: 1})):
        response = server.lambda_handler(http_event(body), None)
        assert len(response["body"]) < 1_000


@pytest.mark.parametrize("version", ["2026-07-28", "2025-03-26"])
def test_initialize_with_a_modern_version_header_gets_the_supported_versions(version: str) -> None:
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    status, answer = post(http_event(body, headers={"mcp-protocol-version": version}))
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert "2026-07-28" in answer["error"]["message"]


def test_the_trace_context_of_a_request_is_on_its_log_lines() -> None:
    server = Server("traced")
    server.tool(name="nothing")(lambda: None)
    play = Player(server, meta={
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "vendor=1",
        "baggage": ",".join(f"member{number}=value" for number in range(60)),
    })  # fmt: skip
    play.call("nothing")
    tags = play.observer.tags
    assert (tags["trace_id"], tags["span_id"]) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    assert tags["tracestate"] == "vendor=1"
    assert tags["baggage"].startswith("member0=value,")
    assert len(tags["baggage"]) <= 512
