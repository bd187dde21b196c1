import json
from base64 import b64encode

import pytest

from mcp_roundtrip_tools.run.api_gateway.payload import MalformedResponse, to_event, to_response
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.template.model import Route

ROUTE = Route("ANY", "/a/{id}", "f")


def event_of(request, parameters=None):
    return to_event(request, ROUTE, parameters or {}, request_id="id-1", now=1584039838.5)


def reply_of(value):
    return to_response(json.dumps(value).encode())


def test_an_event_has_the_shape_of_payload_format_2():
    headers = (
        ("Host", "example.org:3000"),
        ("X-A", "1"),
        ("x-a", "2"),
        ("User-Agent", "u"),
        ("Cookie", "c=1; d=2"),
    )
    event = event_of(Request("POST", "/a/b%20c?x=1&x=2&y=", headers), {"id": "b c"})
    assert event == {
        "version": "2.0",
        "routeKey": "ANY /a/{id}",
        "rawPath": "/a/b c",
        "rawQueryString": "x=1&x=2&y=",
        "cookies": ["c=1", "d=2"],
        "headers": {
            "host": "example.org:3000",
            "x-a": "1,2",
            "user-agent": "u",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-port": "3000",
            "x-forwarded-proto": "http",
        },
        "queryStringParameters": {"x": "1,2", "y": ""},
        "pathParameters": {"id": "b c"},
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": "example.org",
            "domainPrefix": "example",
            "http": {
                "method": "POST",
                "path": "/a/b c",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "u",
            },
            "requestId": "id-1",
            "routeKey": "ANY /a/{id}",
            "stage": "$default",
            "time": "12/Mar/2020:19:03:58 +0000",
            "timeEpoch": 1584039838500,
        },
        "isBase64Encoded": False,
    }


@pytest.mark.parametrize(
    ("content_type", "encoded"),
    [
        ("application/json", False),
        ("Application/JSON; charset=utf-8", False),
        ("text/plain", False),
        ("application/xml", False),
        ("application/x-www-form-urlencoded", True),
        ("application/problem+json", True),
        ("image/png", True),
        ("", True),
    ],
)
def test_a_body_is_base64_unless_its_type_is_text(content_type, encoded):
    event = event_of(Request("POST", "/", (("Content-Type", content_type),), b"{}"))
    assert (event["isBase64Encoded"], event["body"]) == (encoded, "e30=" if encoded else "{}")


@pytest.mark.parametrize(
    ("value", "body"), [("hi", b"hi"), ({"a": 1}, b'{"a": 1}'), ([1], b"[1]"), (None, b"null")]
)
def test_a_value_without_a_status_is_the_body_of_a_200(value, body):
    reply = reply_of(value)
    assert (reply.status, reply.headers, reply.body) == (200, (("content-type", "application/json"),), body)


def test_a_response_becomes_status_headers_cookies_and_body():
    reply = reply_of(
        {
            "statusCode": "201",
            "headers": {"X-N": 1, "X-B": True, "Content-Type": "text/html", "Content-Length": "9"},
            "multiValueHeaders": {"X-Ignored": ["1"]},
            "cookies": ["a=1; HttpOnly", "b=2"],
            "body": b64encode(b"\xff").decode(),
            "isBase64Encoded": True,
        }
    )
    assert (reply.status, reply.body) == (201, b"\xff")
    assert reply.headers == (
        ("x-n", "1"),
        ("x-b", "true"),
        ("content-type", "text/html"),
        ("set-cookie", "a=1; HttpOnly"),
        ("set-cookie", "b=2"),
    )


def test_a_response_without_a_type_is_plain_text():
    assert reply_of({"statusCode": 200, "body": "x"}).headers == (
        ("content-type", "text/plain; charset=utf-8"),
    )


@pytest.mark.parametrize(
    "value",
    [
        {"statusCode": "many"},
        {"statusCode": True},
        {"statusCode": 42},
        {"statusCode": 200, "headers": []},
        {"statusCode": 200, "headers": {"a": "b\r\nc: d"}},
        {"statusCode": 200, "headers": {"a": ["b"]}},
        {"statusCode": 200, "headers": {"a b\r\n": "c"}},
        {"statusCode": 200, "cookies": "a=1"},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
    ],
)
def test_a_malformed_response_is_refused(value):
    with pytest.raises(MalformedResponse):
        reply_of(value)
