import pytest

from mcp_roundtrip_tools.run.api_gateway.routing import Cors
from mcp_roundtrip_tools.run.http.messages import Request, Response

APP = "https://app.example"
CONFIGURATION = {
    "AllowOrigins": [APP, "https://other.example"],
    "AllowMethods": ["POST"],
    "AllowHeaders": ["content-type", "mcp-method"],
    "ExposeHeaders": ["www-authenticate"],
    "MaxAge": 7200,
}


def cors(**changes):
    found = Cors.of({**CONFIGURATION, **changes})
    assert found is not None
    return found


def request(method, origin, **headers):
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Request(method, "/", (*named, *([("origin", origin)] if origin else [])))


def test_a_preflight_is_answered_from_the_configuration():
    reply = cors().preflight(request("OPTIONS", APP, access_control_request_method="POST"))
    assert reply is not None
    assert (reply.status, reply.body) == (204, b"")
    assert dict(reply.headers) == {
        "access-control-allow-origin": APP,
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": "content-type,mcp-method",
        "access-control-max-age": "7200",
        "access-control-expose-headers": "www-authenticate",
        "vary": "origin",
    }


def test_a_preflight_of_another_origin_allows_nothing():
    reply = cors().preflight(request("OPTIONS", "https://evil.example", access_control_request_method="POST"))
    assert reply == Response(204)


@pytest.mark.parametrize(
    "other",
    [
        request("POST", APP, access_control_request_method="POST"),
        request("OPTIONS", APP),
        request("OPTIONS", None, access_control_request_method="POST"),
    ],
)
def test_other_requests_are_not_preflights(other):
    assert cors().preflight(other) is None


def test_the_headers_of_a_function_are_replaced():
    own = Response(200, (("Access-Control-Allow-Origin", "*"), ("content-type", "text/plain")), b"x")
    for origin, expected in ((APP, APP), ("https://evil.example", None), (None, None)):
        reply = cors().add_to(own, request("POST", origin))
        names = [name for name, _ in reply.headers]
        assert dict(reply.headers).get("access-control-allow-origin") == expected
        assert ("content-type" in names, "Access-Control-Allow-Origin" in names) == (True, False)


@pytest.mark.parametrize(
    ("allowed", "credentials", "expected"),
    [("*", False, "*"), ("*", True, APP), ("https://*", False, APP), ("http://*", False, None)],
)
def test_origins_may_be_wildcards(allowed, credentials, expected):
    configured = cors(AllowOrigins=[allowed], AllowCredentials=credentials)
    headers = dict(configured.add_to(Response(200), request("POST", APP)).headers)
    assert headers.get("access-control-allow-origin") == expected
    assert headers.get("access-control-allow-credentials") == ("true" if credentials else None)


def test_the_short_forms_of_sam_are_read():
    assert Cors.of(None) is Cors.of(False) is None
    for configuration, allowed in ((True, True), (APP, True), ("https://other.example", False)):
        found = Cors.of(configuration)
        assert found is not None
        assert found.allows(APP) is allowed
