"""No part of an endpoint's URI is the caller's choice, through any event source.

The member `domainName` is "the same as the incoming Host header".
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcp_roundtrip.adapters.detect import detect
from mcp_roundtrip_tools.events import Event, post
from support.event_formats import FORMATS
from support.event_sources import with_context, with_header
from support.messages import call

API = "a1b2c3d4e5"
URL_ID = "abcdefghijklmnopqrstuvwxyz234567"
HOST = f"{API}.execute-api.eu-west-1.amazonaws.com"
URL_HOST = f"{URL_ID}.lambda-url.eu-west-1.on.aws"


def http_api(path: str = "/mcp", stage: str = "$default", route: str = "POST /mcp") -> Event:
    event = with_context(post(path, call("x")), apiId=API, domainName=HOST, stage=stage, routeKey=route)
    return {**event, "routeKey": route}


def http_api_1_0(path: str = "/mcp", stage: str = "$default", route: str = "POST /mcp") -> Event:
    event = FORMATS["http_api_1_0"](post(path, call("x")))
    known = {"apiId": API, "domainName": HOST, "stage": stage, "resourceId": route}
    return with_context(event, **known, resourcePath=route.rpartition(" ")[2])


def rest_api(path: str = "/mcp", stage: str = "prod", route: str = "/mcp") -> Event:
    event = FORMATS["rest_api"](post(path, call("x")))
    changed = with_context(event, apiId=API, domainName=HOST, stage=stage, resourcePath=route)
    return {**changed, "resource": route}


def function_url(path: str = "/mcp") -> Event:
    return with_context(FORMATS["function_url"](post(path, call("x"))), apiId=URL_ID, domainName=URL_HOST)


def uri(event: Event) -> str | None:
    return detect(event).parse_request(event).endpoint_uri


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (http_api(), f"https://{HOST}/mcp"),
        (http_api(route="$default"), f"https://{HOST}"),
        (http_api(stage="dev", path="/dev/mcp"), f"https://{HOST}/dev/mcp"),
        (http_api(stage="dev", route="$default"), f"https://{HOST}/dev"),
        (http_api(route="ANY /team/{tool}/mcp"), f"https://{HOST}/team"),
        (http_api(route="ANY /{proxy+}"), f"https://{HOST}"),
        (http_api(path="/mcp/server-card", route="GET /mcp/server-card"), f"https://{HOST}/mcp"),
        (http_api(route="ANY /"), f"https://{HOST}"),
        (http_api_1_0(), f"https://{HOST}/mcp"),
        (http_api_1_0(stage="dev"), f"https://{HOST}/dev/mcp"),
        (http_api_1_0(route="$default"), f"https://{HOST}"),
        (rest_api(), f"https://{HOST}/prod/mcp"),
        (rest_api(route="/"), f"https://{HOST}/prod"),
        (rest_api(route="/{proxy+}"), f"https://{HOST}/prod"),
        (rest_api(route="/mcp/{proxy+}"), f"https://{HOST}/prod/mcp"),
        (function_url(), f"https://{URL_HOST}"),
        (with_context(http_api(), domainName=HOST.upper()), f"https://{HOST}/mcp"),
    ],
)
def test_the_uri_is_the_host_of_the_api_its_stage_and_its_route(event: Event, expected: str) -> None:
    assert uri(event) == expected


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("GET /.well-known/oauth-protected-resource/mcp", f"https://{HOST}/mcp"),
        ("GET /.well-known/oauth-protected-resource", f"https://{HOST}"),
        ("GET /.well-known/oauth-protected-resource/{path+}", None),
        ("GET /.well-known/{path+}", None),
        ("GET /.well-known/oauth-protected-resources/mcp", None),
        ("GET /.well-known", None),
        ("GET /.well-knowns/mcp", f"https://{HOST}/.well-knowns/mcp"),
    ],
)
def test_a_route_of_metadata_has_the_uri_that_they_describe(route: str, expected: str | None) -> None:
    assert uri(http_api(route=route)) == expected


EVIL = "evil.example"
FORWARDED = (
    *("host", "x-forwarded-host", "x-forwarded-server", "x-original-host", "x-host", "x-forwarded-prefix"),
    *("x-original-url", "x-rewrite-url", "x-forwarded-path", "x-envoy-original-path", "x-apigw-api-id"),
    *("origin", "referer", "via", "true-client-ip", "x-forwarded-proto", "x-forwarded-port"),
)

PATHS = (
    *("/", "", "/mcp/", "//mcp", "/mcp//", "/./mcp", "/x/../mcp", "/MCP", "/mcp;a=b", "/mcp?x", "/mcp#x"),
    *("/%6dcp", "/mcp%2f..%2fx", "/mcp%00", "/%2e%2e/mcp", "/mcp%3fx", "/mcp\\..\\x", "/mçp"),
    *(f"//{EVIL}/mcp", f"/{EVIL}/mcp", f"https://{EVIL}/mcp", f"http://{EVIL}:80/mcp", f"@{EVIL}/mcp"),
    *("/dev/mcp", "/prod/mcp", "/$default/mcp", "/tools/x", "/.well-known/oauth-protected-resource/x", "*"),
)

WITH_VARIABLES: Mapping[str, Callable[[str], Event]] = {
    "http_api": lambda path: http_api(path),
    "http_api, its default route": lambda path: http_api(path, route="$default"),
    "http_api, a greedy route": lambda path: http_api(path, route="ANY /mcp/{proxy+}"),
    "http_api, a stage": lambda path: http_api(path, stage="dev"),
    "http_api_1_0": lambda path: http_api_1_0(path),
    "http_api_1_0, a greedy route": lambda path: http_api_1_0(path, route="ANY /mcp/{proxy+}"),
    "rest_api": lambda path: rest_api(path),
    "rest_api, a greedy route": lambda path: rest_api(path, route="/mcp/{proxy+}"),
    "function_url": function_url,
}
"""Events by the path that their caller asks for."""


@pytest.mark.parametrize("kind", WITH_VARIABLES)
def test_the_path_of_a_request_changes_nothing(kind: str) -> None:
    events = {path: WITH_VARIABLES[kind](path) for path in PATHS}
    expected = uri(WITH_VARIABLES[kind]("/mcp"))
    assert expected is not None
    assert {path: uri(event) for path, event in events.items()} == dict.fromkeys(PATHS, expected)
    # The variables of a path, and the copies of the path in the event.
    for path in PATHS:
        event = {**events["/mcp/"], "pathParameters": {"proxy": path, "path": path}}
        context = {"path": path, "http": {**event["requestContext"].get("http", {}), "path": path}}
        if "http" not in event["requestContext"]:
            del context["http"]
        assert uri(with_context({**event, "path": path} if "path" in event else event, **context)) == expected


@pytest.mark.parametrize("kind", WITH_VARIABLES)
def test_headers_and_the_query_change_nothing(kind: str) -> None:
    event = WITH_VARIABLES[kind]("/mcp")
    expected = uri(event)
    for name in FORWARDED:
        for value in (EVIL, f"https://{EVIL}/mcp", f"host={EVIL};proto=http"):
            assert uri(with_header(event, name, value)) == expected, name
            assert uri(with_header(event, name.title(), value, HOST)) == expected, name
    forwarded = with_header(event, "forwarded", f"host={EVIL};proto=http")
    assert uri(forwarded) == expected
    queries = {"rawQueryString": f"audience=https://{EVIL}", "queryStringParameters": {"audience": EVIL}}
    assert uri({**event, **queries, "stageVariables": {"audience": EVIL}}) == expected
    assert uri({**event, "body": f'{{"requestContext": {{"domainName": "{EVIL}"}}}}'}) == expected


AWS = "eu-west-1.amazonaws.com"
HOSTS = (
    *(EVIL, "mcp.example.com", "tenant-7.example.com", f"{API}.example.com"),
    *(f"{API}.execute-api.example.com", f"{HOST}.{EVIL}", f"{API}.execute-api.{EVIL}", f"{EVIL}/{HOST}"),
    *(f"{API}.execute-api.eu-west-1.{EVIL}", f"{API}.execute-api.a.b.amazonaws.com", f"x.{HOST}"),
    *(f"{API}x.execute-api.{AWS}", f"other12345.execute-api.{AWS}", f"execute-api.{AWS}"),
    *(f"{API}-vpce-0a1b.execute-api.{AWS}", "vpce-0a1b-c2d3.execute-api.eu-west-1.vpce.amazonaws.com"),
    f"{API}.execute-api.cn-north-1.amazonaws.com.cn",
    *(f"{HOST}.", f"{HOST}:443", f"{HOST}:8443", f"user@{HOST}", f"{HOST}/x", f"{HOST}#", f"{HOST}?x"),
    *(f" {HOST}", f"{HOST}\n", f"{HOST}\x00", f"{API}.execute-api..amazonaws.com"),
    *(f"{API}.execute-api.eu/west.amazonaws.com", f"{API}.execute-api.é.amazonaws.com"),
    *("", "localhost", "127.0.0.1", "[::1]", "testPrefix.testDomainName", URL_HOST),
)


@pytest.mark.parametrize("kind", [kind for kind in WITH_VARIABLES if kind != "function_url"])
def test_a_host_that_aws_did_not_give_to_the_api_has_no_uri(kind: str) -> None:
    event = WITH_VARIABLES[kind]("/mcp")
    found = {host: uri(with_context(event, domainName=host, domainPrefix=API)) for host in HOSTS}
    assert {host: found for host, found in found.items() if found is not None} == {}


def test_a_host_that_lambda_did_not_give_to_the_function_has_no_uri() -> None:
    hosts = (
        *(f"other.{URL_HOST.partition('.')[2]}", f"x.lambda-url.eu-west-1.on.aws.{EVIL}"),
        *(f"{URL_ID}.lambda-url.eu-west-1.on.{EVIL}", f"{URL_HOST}.", f"{URL_HOST}:443"),
    )
    events = [with_context(function_url(), domainName=host) for host in hosts]
    assert [uri(event) for event in events] == [None] * len(hosts)


@pytest.mark.parametrize(
    "changes",
    [
        *({"stage": stage} for stage in ("", "a/b", "../x", "a b", "%61", "é", None, 7, "a.b")),
        *({"routeKey": route} for route in ("", "mcp", "POST mcp", "POST /m{c}p", "POST ", None, ["/mcp"])),
        *({"apiId": api} for api in ("", None, "a.b", "x", 7, HOST)),
        *({"domainName": name} for name in (None, 7, [HOST])),
    ],
    ids=str,
)
def test_a_member_that_api_gateway_does_not_send_has_no_uri(changes: dict[str, Any]) -> None:
    assert uri(with_context(http_api(), **changes)) is None


def test_payload_1_0_without_the_key_of_its_route_has_no_uri() -> None:
    # In the developer guide\'s example `resourceId` is null, and `resourcePath` is the path of the request.
    event = with_context(http_api_1_0(f"/{EVIL}"), resourceId=None, resourcePath=f"/{EVIL}")
    assert uri(event) is None
