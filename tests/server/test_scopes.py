"""Scopes of features: which features a caller may call, and which are hidden from it."""

import json
from typing import Any

import pytest

from mcp_roundtrip import Context, DefinitionError, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from mcp_roundtrip.server.lambda_invocation import Forwarded
from support import callers
from support.client_requests import accepted, refused, text
from support.deployment import Deployment
from support.event_sources import response_of
from support.lambda_context import LambdaContext
from support.messages import call, http_event, message

IMPLIED = {"db:admin": ["db:write"], "db:write": ["db:read"]}
READER, WRITER, NO_SCOPES = "db:read", "db:write billing", ""
RESOURCE_METADATA = 'resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp"'


def databases(**given):
    """Return a server with an open and a scoped feature of each kind."""
    server = Server("databases", scopes=IMPLIED, **given)
    server.tool(name="ping")(lambda: "pong")
    server.tool(name="read", scopes=["db:read"])(lambda: "row")
    server.tool(name="write", scopes=["db:write", "billing"], requires=["sampling"])(lambda: "written")

    @server.prompt
    def hello() -> str:
        return "Hello"

    @server.prompt(scopes=["db:write"])
    def migrate(table: str) -> str:
        return f"Migrate {table}"

    server.completion("migrate", "table")(lambda typed: ["secret_table"])
    server.resource("db://status", name="status")(lambda: "up")

    @server.resource("db://rows/{number}", scopes=["db:read"])
    def row(number: int) -> str:
        return str(number)

    server.completion("db://rows/{number}", "number")(lambda typed: ["42"])
    return server


def caller(scope, server=None, **facets):
    """Return a caller with these scopes, of a deployment that names its authorization server."""
    settings = {"token_issuer": "https://id.test"}
    scopes = tuple(scope.split())
    return Deployment(
        server or databases(), scopes=scopes, replaced_settings=settings, has_table=False, **facets
    )


def hiding(scope: str, **facets: Any) -> Deployment:
    return caller(scope, databases(hide_unauthorized=True, channels=("default",)), **facets)


def showing(scope: str, **facets: Any) -> Deployment:
    return caller(scope, databases(channels=("default",)), **facets)


def completing(kind, name, argument):
    ref = {"type": f"ref/{kind}", "name" if kind == "prompt" else "uri": name}
    return message("completion/complete", ref=ref, argument={"name": argument, "value": ""})


REQUESTS = {
    "a tool": (call("write"), "db:write billing"),
    "a prompt": (message("prompts/get", name="migrate", arguments={"table": "t"}), "db:write"),
    "a resource": (message("resources/read", uri="db://rows/7"), "db:read"),
    "completion of a prompt": (completing("prompt", "migrate", "table"), "db:write"),
    "completion of a resource": (completing("resource", "db://rows/{number}", "number"), "db:read"),
}
"""Requests and the scopes that they require."""

every_request = pytest.mark.parametrize("request_name", REQUESTS)


@every_request
def test_a_call_without_its_scopes_is_challenged_with_all_of_them_and_a_broader_scope_suffices(request_name):
    body, needed = REQUESTS[request_name]
    for some in (NO_SCOPES, needed.partition(" billing")[0] if " " in needed else NO_SCOPES):
        client = caller(some)
        answer = client.send(body)
        assert answer.status == 403
        error = f'Bearer error="insufficient_scope", scope="{needed}", {RESOURCE_METADATA}'
        assert answer.headers["www-authenticate"] == error
        refused = json.loads(answer.body)
        assert refused["id"] == body["id"]
        assert all(scope in refused["error"]["message"] for scope in needed.split())
        assert ("insufficient_scope", {"scopes": needed.split()}) in client.observer.events
    assert "result" in json.loads(caller("db:admin billing").send(body).body)


def test_a_state_is_valid_after_a_step_up_and_scopes_are_checked_in_every_round():
    server = Server("x")

    @server.tool(scopes=["db:read"])
    def greet(ctx: Context) -> str:
        return f"Hello, {ctx.elicit('name', 'Who?', str)}!"

    client = caller("db:read", server)
    asked = client.call("greet")
    answered = {"requestState": asked["requestState"], "inputResponses": {"name": accepted("Ada")}}
    assert client.by(scopes=()).request("tools/call", name="greet", arguments={}, **answered).status == 403
    done = client.by(scopes=("db:read", "db:write")).post_call("greet", **answered)
    assert text(done["result"]) == "Hello, Ada!"


@every_request
def test_a_hidden_feature_is_unknown(request_name, through_door):
    def rename(text: str) -> str:
        return text.replace("migrate", "nothing").replace("write", "nothing").replace("rows", "nothing")

    hidden, _ = REQUESTS[request_name]
    client = hiding(NO_SCOPES, through_door=through_door)
    answers = [client.send(body) for body in (hidden, json.loads(rename(json.dumps(hidden))))]
    for answer in answers:
        assert "www-authenticate" not in answer.headers
        assert refused(answer)[1] == -32602
    assert rename(answers[0].body) == answers[1].body
    allowed = hiding(f"db:admin {WRITER}", through_door=through_door)
    assert "result" in json.loads(allowed.send(hidden).body)
    assert all(custom["mcpHideUnauthorized"] for _, _, custom, _ in allowed.forwarded)


LISTS = {
    "tools/list": ("tools", "name", ["ping"], ["ping", "read"], ["ping", "read", "write"]),
    "prompts/list": ("prompts", "name", ["hello"], ["hello"], ["hello", "migrate"]),
    "resources/list": ("resources", "uri", *[["db://status"]] * 3),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", [], *[["db://rows/{number}"]] * 2),
}


def listed(client: Deployment, method: str) -> tuple[list[str], str]:
    """Return the names in a list, and its cache scope."""
    member, key, *_ = LISTS[method]
    result = client.result(method)
    return [item[key] for item in result[member]], result["cacheScope"]


@pytest.mark.parametrize("hides", [True, False])
def test_a_uri_of_a_hidden_resource_does_not_match_another_template(hides):
    owner = Server("files", hide_unauthorized=hides)

    @owner.resource("file:///secret/{name}", scopes=["private"])
    def secret(name: str) -> str:
        return "hidden"

    @owner.resource("file:///{+path}")
    def anything(path: str) -> str:
        return "open"

    client = caller(NO_SCOPES, owner, through_door=True)
    response = client.request("resources/read", uri="file:///secret/x")
    assert ("www-authenticate" in response.headers) is not hides
    assert refused(response)[1] == (-32602 if hides else -32600)
    secret_x = client.by(scopes=("private",)).result("resources/read", uri="file:///secret/x")
    assert secret_x["contents"][0]["text"] == "hidden"
    assert client.result("resources/read", uri="file:///other/x")["contents"][0]["text"] == "open"


@pytest.mark.parametrize("method", LISTS)
def test_lists_have_all_features_or_only_the_callable_ones_and_are_private(method, through_door):
    hidden, shown = (make(NO_SCOPES, through_door=through_door) for make in (hiding, showing))
    *_, everything = LISTS[method]
    for scope, names in zip((NO_SCOPES, READER, WRITER), LISTS[method][2:], strict=True):
        scopes = tuple(scope.split())
        for _ in range(2):
            assert listed(hidden.by(scopes=scopes), method) == (names, "private")
        assert listed(shown.by(scopes=scopes), method) == (everything, "public")


@pytest.mark.parametrize("scope", ["two words", '"', "é"])
def test_malformed_scopes_are_refused_at_import(scope):
    with pytest.raises(DefinitionError):
        Server("x").tool(scopes=[scope])(lambda: "")
    with pytest.raises(DefinitionError):
        Deployment(databases(), through_door=True, door_options={"initial_scopes": [scope]})


def test_the_legacy_dialect_of_tasks_checks_the_name_and_the_scopes_before_the_use_of_tasks():
    server = Server("x", legacy_tasks="sep-2322")

    @server.tool(scopes=["db:read"], task="required")
    def lasting(ctx: Context) -> str:
        return "done"

    client = caller(NO_SCOPES, server, version=LEGACY_VERSION)
    for params in ({}, {"task": {}}):
        assert client.request("tools/call", name="lasting", arguments={}, **params).status == 403
        assert client.error("tools/call", name="nothing", arguments={}, **params)["code"] == -32602


@every_request
def test_an_owner_hides_the_features_that_its_front_door_hides(request_name):
    """The catalog may be older, or have a broader template for the same URI."""
    body, _ = REQUESTS[request_name]
    event = http_event(body, authorizer=callers.authorizer(AuthMode.JWT, "alice"))
    for hides, code in ((True, -32602), (False, -32600)):
        context = LambdaContext(custom=Forwarded(hide_unauthorized=hides).custom())
        assert refused(response_of(caller(NO_SCOPES).invoke(event, context)))[1] == code
