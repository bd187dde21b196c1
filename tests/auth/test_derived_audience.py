"""Servers without MCP_AUDIENCE: tokens and states of one endpoint are refused at every other."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip_testing.ports import RecordingObserver
from mcp_roundtrip_tools.events import Event, post
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.template.model import REGION
from support.authorization_server import authorization_server
from support.aws_clients import FUNCTION
from support.deployment import Deployment
from support.event_formats import FORMATS, URL_ID
from support.event_sources import with_context, with_header
from support.fake_kms import mac_key, serve, signing_key
from support.messages import call

HOST = f"a1b2c3d4e5.execute-api.{REGION}.amazonaws.com"
ELSEWHERE = HOST.replace(REGION, "eu-west-3")
NAMED = {"name": {"action": "accept", "content": {"value": "Ada"}}}


def http_api(body: Any, host: str = HOST, stage: str = "$default", route: str = "ANY /mcp") -> Event:
    api = host.partition(".")[0]
    event = with_context(post("/mcp", body), apiId=api, domainName=host, stage=stage, routeKey=route)
    return {**event, "routeKey": route}


def rest_api(body: Any) -> Event:
    event = FORMATS["rest_api"](post("/mcp", body))
    return with_context(event, apiId=HOST.partition(".")[0], domainName=HOST, resourcePath="/mcp")


OTHER_HOST = HOST.replace("a1", "z9")
Send = Callable[[Any], Event]


ENDPOINTS: Mapping[str, tuple[str, Send]] = {
    "a route": (f"https://{HOST}/mcp", http_api),
    "another route": (f"https://{HOST}/other", lambda body: http_api(body, route="ANY /other")),
    "the default route": (f"https://{HOST}", lambda body: http_api(body, route="$default")),
    "a stage": (f"https://{HOST}/dev/mcp", lambda body: http_api(body, stage="dev")),
    "another API": (f"https://{OTHER_HOST}/mcp", lambda body: http_api(body, host=OTHER_HOST)),
    "a REST API": (f"https://{HOST}/prod/mcp", rest_api),
    "a function URL": (
        f"https://{URL_ID}.lambda-url.{REGION}.on.aws",
        lambda body: FORMATS["function_url"](post("/mcp", body)),
    ),
}
"""Endpoint -> its URI, and the event of a request."""


@pytest.fixture(scope="module")
def services():
    """Return an issuer, and the two settings of the keys."""
    kms = FakeKms()
    with serve(kms) as server, authorization_server() as issuer, pytest.MonkeyPatch.context() as patch:
        for name, value in {**FUNCTION, "AWS_ENDPOINT_URL_KMS": server.url}.items():
            patch.setenv(name, value)
        patch.setattr(wiring, "observer", RecordingObserver)
        keys = {"MCP_STATE_KEY_ARN": signing_key(kms), "MCP_STATE_ENCRYPTION_KEY_ARN": mac_key(kms)}
        yield issuer, keys


server = Server("greetings")


@server.tool
def greet(ctx: Context) -> str:
    return f"Hello, {ctx.elicit('name', 'Who?', str)}!"


def body(response: Any) -> Any:
    return json.loads(response["body"])


def invoke(deployment: Deployment, send: Send, token: str | None, **params: Any) -> Any:
    event = send(call("greet", **params))
    if token is not None:
        event = with_header(event, "authorization", f"Bearer {token}")
    return deployment.invoke(event)


def result(deployment: Deployment, send: Send, token: str | None, **params: Any) -> Any:
    answer = body(invoke(deployment, send, token, **params))
    assert "result" in answer, answer
    return answer["result"]


@pytest.fixture(scope="module")
def token_for(services):
    return services[0].token


@pytest.fixture(scope="module")
def bearer(services):
    """Return a deployment with three settings, whose callers have tokens."""
    issuer, keys = services
    return Deployment(server, settings={"MCP_TOKEN_ISSUER": issuer.issuer, **keys})


@pytest.mark.parametrize("name", ENDPOINTS)
def test_three_settings_are_enough_for_tokens_and_questions(name, bearer, token_for):
    uri, send = ENDPOINTS[name]
    token = token_for(uri)
    asked = result(bearer, send, token)
    done = result(bearer, send, token, requestState=asked["requestState"], inputResponses=NAMED)
    assert done["content"][0]["text"] == "Hello, Ada!"


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_token_of_every_other_endpoint_is_refused(name, bearer, token_for):
    _, send = ENDPOINTS[name]
    others = {other: token_for(uri) for other, (uri, _) in ENDPOINTS.items() if other != name}
    refused = {other: invoke(bearer, send, token)["statusCode"] for other, token in others.items()}
    assert refused == dict.fromkeys(others, 401)


def test_a_state_is_refused_at_another_endpoint_also_with_the_same_issuer(services):
    """The issuer decides about the keys of encryption; the audience is a claim of its own."""
    _, keys = services
    deployment = Deployment(server, settings={"MCP_AUTH_MODE": "none", "MCP_ISSUER": "shop", **keys})
    (_, here), (_, there) = ENDPOINTS["a route"], ENDPOINTS["another route"]
    state = result(deployment, here, None)["requestState"]
    for send, accepted in ((there, False), (here, True)):
        answer = body(invoke(deployment, send, None, requestState=state, inputResponses=NAMED))
        assert ("result" in answer) is accepted


EVIL = "tenant-7.example.com"


@pytest.mark.parametrize(
    "attack",
    [
        lambda event: with_context(event, domainName=EVIL),
        lambda event: with_context(event, domainName=ELSEWHERE),
        lambda event: with_header(with_context(event, domainName=EVIL), "x-forwarded-host", HOST),
        lambda event: with_header(event, "host", EVIL),
        lambda event: with_header(event, "x-forwarded-host", EVIL),
        lambda event: with_header(event, "forwarded", f"host={EVIL}"),
        lambda event: {**event, "rawPath": f"https://{EVIL}/mcp"},
        lambda event: {**event, "rawPath": f"//{EVIL}/mcp"},
    ],
)
def test_a_token_for_a_server_that_the_caller_names_is_refused(attack, bearer, token_for):
    for uri in (f"https://{EVIL}/mcp", f"https://{EVIL}", f"https://{ELSEWHERE}/mcp"):
        response = invoke(bearer, lambda each: attack(http_api(each)), token_for(uri))
        assert response["statusCode"] == 401 or body(response)["error"]["code"] == -32603


@pytest.mark.parametrize("kind", ["alb", "alb_multi_value"])
def test_without_a_uri_no_token_is_accepted(kind, bearer, token_for):
    for uri in (f"https://{HOST}/mcp", "https://x.test", ""):
        response = invoke(bearer, lambda each: FORMATS[kind](post("/mcp", each)), token_for(uri))
        assert body(response)["error"]["code"] == -32603


def ports_of(deployment: Deployment, uri: str | None) -> Ports:
    for_endpoint = deployment.ports().for_endpoint
    assert for_endpoint is not None
    return for_endpoint(uri)


def test_the_ports_of_an_endpoint_are_kept_and_their_number_is_limited(services):
    anonymous = Deployment(server, settings={"MCP_AUTH_MODE": "none", **services[1]})
    uris = [f"https://{HOST}/{number}" for number in range(wiring.MAX_ENDPOINTS + 1)]
    first, second = (ports_of(anonymous, uris[0]) for _ in range(2))
    assert first is second
    for uri in uris:
        ports_of(anonymous, uri)
    assert ports_of(anonymous, uris[0]) is not first


def test_a_configured_audience_is_the_only_one(services):
    issuer, keys = services
    settings = {"MCP_TOKEN_ISSUER": issuer.issuer, "MCP_AUDIENCE": "https://x.test/mcp", **keys}
    deployment = Deployment(server, settings=settings)
    for _, send in ENDPOINTS.values():
        assert "requestState" in result(deployment, send, issuer.token("https://x.test/mcp"))
        assert invoke(deployment, send, issuer.token(f"https://{HOST}/mcp"))["statusCode"] == 401


def test_a_deployment_with_a_table_derives_nothing():
    settings = load_settings({"MCP_AUTH_MODE": "none", "MCP_TASK_TABLE": "tasks"})
    ports = wiring.make_ports(settings)
    assert ports.for_endpoint is None
    with pytest.raises(SettingsError) as refused:
        ports.settings.required("audience")
    assert refused.value.setting == "MCP_AUDIENCE"


def test_ports_outside_of_a_request_identify_nobody(bearer, token_for):
    token = token_for(f"https://{HOST}/mcp")
    with pytest.raises(SettingsError) as refused:
        bearer.ports().authenticator.authenticate({"authorization": f"Bearer {token}"}, {})
    assert refused.value.setting == "MCP_AUDIENCE"
