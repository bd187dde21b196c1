"""Scopes of features: which features a caller may call, and which are hidden from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_roundtrip import Context, DefinitionError, FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip.server.invocation import Forwarded, Invocation
from mcp_roundtrip_local.catalog import CatalogError, catalog_lists, hides_unauthorized, merged_scopes
from mcp_roundtrip_testing import Player
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from support.legacy_client import assert_valid
from support.messages import META, call, headers, http_event, message

IMPLIED = {"db:admin": ["db:write"], "db:write": ["db:read"]}
READER, WRITER, NO_SCOPES = "db:read", "db:write billing", ""
RESOURCE_METADATA = 'resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp"'


def databases(**given: Any) -> Server:
    """Return a server with an open and a scoped feature of each kind."""
    server = Server("databases", scopes=IMPLIED, **given)

    @server.tool
    def ping() -> str:
        return "pong"

    @server.tool(scopes=["db:read"])
    def read() -> str:
        return "row"

    @server.tool(scopes=["db:write", "billing"], requires=["sampling"])
    def write(ctx: Context) -> str:
        return "written"

    @server.prompt
    def hello() -> str:
        return "Hello"

    @server.prompt(scopes=["db:write"])
    def migrate(table: str) -> str:
        return f"Migrate {table}"

    server.completion("migrate", "table")(lambda typed: ["secret_table"])

    @server.resource("db://status")
    def status() -> str:
        return "up"

    @server.resource("db://rows/{number}", scopes=["db:read"])
    def row(number: int) -> str:
        return str(number)

    server.completion("db://rows/{number}", "number")(lambda typed: ["42"])
    return server


def ports(mode: AuthMode = AuthMode.JWT, observer: RecordingObserver | None = None) -> Ports:
    authenticator = EventAuthenticator(mode, "user", "scope")
    return make_ports(auth=authenticator, authorization_server="https://id.test", observer=observer)


def signed_in(scope: str) -> Mapping[str, Any]:
    return {"jwt": {"claims": {"iss": "https://id.test", "sub": "alice", "scope": scope}, "scopes": None}}


def send(
    endpoint: Endpoint, body: Mapping[str, Any], authorizer: Mapping[str, Any], given: Ports | None = None
) -> HttpResponse:
    request = HttpRequest("POST", headers(body), json.dumps(body), authorizer)
    return endpoint.respond(request, given or ports(), Invocation("id", 1e18))


def completing(kind: str, name: str, argument: str) -> dict[str, Any]:
    ref = {"type": f"ref/{kind}", "name" if kind == "prompt" else "uri": name}
    return message("completion/complete", ref=ref, argument={"name": argument, "value": ""})


REQUESTS: dict[str, tuple[Mapping[str, Any], str]] = {
    "a tool": (call("write"), "db:write billing"),
    "a prompt": (message("prompts/get", name="migrate", arguments={"table": "t"}), "db:write"),
    "a resource": (message("resources/read", uri="db://rows/7"), "db:read"),
    "completion of a prompt": (completing("prompt", "migrate", "table"), "db:write"),
    "completion of a resource": (completing("resource", "db://rows/{number}", "number"), "db:read"),
}
"""Requests and the scopes that they require."""

every_request = pytest.mark.parametrize("request_name", REQUESTS)


# -- step-up ----------------------------------------------------------------------------------------------


@every_request
def test_a_call_without_its_scopes_is_challenged_with_all_of_them(request_name: str) -> None:
    body, needed = REQUESTS[request_name]
    answer = send(databases().endpoint, body, signed_in(NO_SCOPES))
    assert answer.status == 403
    error = f'Bearer error="insufficient_scope", scope="{needed}", {RESOURCE_METADATA}'
    assert answer.headers["www-authenticate"] == error
    assert json.loads(answer.body)["id"] == body["id"]


@every_request
def test_a_broader_scope_suffices(request_name: str) -> None:
    body, _ = REQUESTS[request_name]
    answer = send(databases().endpoint, body, signed_in("db:admin billing"))
    assert "result" in json.loads(answer.body)


def test_scopes_are_checked_after_the_name_and_before_capabilities() -> None:
    endpoint, bare = databases().endpoint, {**META, META_CLIENT_CAPABILITIES: {}}
    assert json.loads(send(endpoint, call("nothing"), signed_in(NO_SCOPES)).body)["error"]["code"] == -32602
    assert send(endpoint, call("write", meta=bare), signed_in(NO_SCOPES)).status == 403
    body = json.loads(send(endpoint, call("write", meta=bare), signed_in(WRITER)).body)
    assert body["error"]["code"] == -32021


def test_features_without_scopes_are_available_to_all_callers() -> None:
    for body in (
        call("ping"),
        message("prompts/get", name="hello"),
        message("resources/read", uri="db://status"),
    ):
        assert send(databases().endpoint, body, signed_in(NO_SCOPES)).status == 200


def test_some_of_the_scopes_do_not_suffice_and_the_challenge_names_all() -> None:
    answer = send(databases().endpoint, call("write"), signed_in("db:write"))
    assert answer.status == 403
    assert 'scope="db:write billing"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("mode", "authorizer"),
    [
        (AuthMode.NONE, {}),
        (AuthMode.NONE, signed_in(READER)),
        (AuthMode.IAM, {"iam": {"accountId": "1", "userId": "AROA:x", "scope": READER}}),
        (AuthMode.LAMBDA, {"lambda": {"user": "alice"}}),
        (AuthMode.LAMBDA, {"lambda": {"user": "alice", "scope": 7}}),
        (AuthMode.LAMBDA, {"lambda": {"user": "alice", "scp": READER}}),
    ],
)
def test_a_caller_with_unknown_scopes_has_none(mode: AuthMode, authorizer: Mapping[str, Any]) -> None:
    endpoint = databases().endpoint
    assert send(endpoint, call("read"), authorizer, ports(mode)).status == 403
    assert send(endpoint, call("ping"), authorizer, ports(mode)).status == 200


def test_scopes_of_a_lambda_authorizer_are_read_from_the_configured_key() -> None:
    authorizer = {"lambda": {"user": "alice", "scope": "db:admin other"}}
    assert send(databases().endpoint, call("read"), authorizer, ports(AuthMode.LAMBDA)).status == 200


def test_a_refusal_without_an_authorization_server_names_no_metadata() -> None:
    given = make_ports(auth=EventAuthenticator(AuthMode.JWT))
    answer = send(databases().endpoint, call("read"), signed_in(NO_SCOPES), given)
    assert answer.status == 403
    assert "www-authenticate" not in answer.headers


def test_a_refusal_is_logged_with_the_missing_scopes() -> None:
    observer = RecordingObserver()
    send(databases().endpoint, call("write"), signed_in(READER), ports(observer=observer))
    assert ("insufficient_scope", {"scopes": ["db:write", "billing"]}) in observer.events


def test_a_state_is_valid_after_a_step_up_and_scopes_are_checked_in_every_round() -> None:
    server = Server("x")

    @server.tool(scopes=["db:read"])
    def greet(ctx: Context) -> str:
        return f"Hello, {ctx.elicit('name', 'Who?', str)}!"

    play = Player(server, authorizer=signed_in("db:read"), ports={"auth": EventAuthenticator(AuthMode.JWT)})
    asked = play.call("greet")
    play.authorizer = signed_in("")
    answers = {"name": {"action": "accept", "content": {"value": "Ada"}}}
    assert asked.respond(answers).status == 403
    play.authorizer = signed_in("db:read db:write")
    assert asked.respond(answers).text == "Hello, Ada!"


def test_a_listed_definition_does_not_reveal_its_scopes() -> None:
    server = databases(channels=("default",))
    listed = send(server.endpoint, message("tools/list"), signed_in(NO_SCOPES)).body
    assert "db:" not in listed
    assert json.loads(listed)["result"]["cacheScope"] == "public"


# -- legacy clients ---------------------------------------------------------------------------------------


def legacy(server: Server, method: str, scope: str, **params: Any) -> HttpResponse:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = HttpRequest("POST", {"mcp-protocol-version": "2025-11-25"}, json.dumps(body), signed_in(scope))
    answer = server.endpoint.respond(request, ports(), Invocation("id", 1e18))
    assert_valid(method, json.loads(answer.body))
    return answer


def test_legacy_clients_are_challenged_in_the_same_way() -> None:
    answer = legacy(databases(), "tools/call", NO_SCOPES, name="read", arguments={})
    assert answer.status == 403
    assert 'error="insufficient_scope", scope="db:read"' in answer.headers["www-authenticate"]
    assert legacy(databases(), "tools/call", READER, name="read", arguments={}).status == 200


def test_legacy_clients_do_not_see_hidden_features() -> None:
    server = databases(hide_unauthorized=True)
    tools = json.loads(legacy(server, "tools/list", READER).body)["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["ping", "read"]
    refused = legacy(server, "tools/call", READER, name="write", arguments={})
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (200, -32602)


def test_the_legacy_dialect_of_tasks_checks_scopes() -> None:
    server = Server("x", legacy_tasks="sep-2322")

    @server.tool(scopes=["db:read"], task="required")
    def lasting(ctx: Context) -> str:
        return "done"

    for params in ({}, {"task": {}}):
        answer = legacy(server, "tools/call", NO_SCOPES, name="lasting", arguments={}, **params)
        assert answer.status == 403


# -- hidden features --------------------------------------------------------------------------------------


@every_request
def test_a_hidden_feature_is_unknown(request_name: str) -> None:
    hidden, _ = REQUESTS[request_name]
    unknown = json.loads(
        json.dumps(hidden)
        .replace("migrate", "nothing")
        .replace("write", "nothing")
        .replace("rows", "nothing")
    )
    endpoint = databases(hide_unauthorized=True).endpoint
    answers = [send(endpoint, body, signed_in(NO_SCOPES)) for body in (hidden, unknown)]
    for answer in answers:
        assert "www-authenticate" not in answer.headers
        assert json.loads(answer.body)["error"]["code"] == -32602
    first, second = (answer.body for answer in answers)
    known = first.replace("migrate", "nothing").replace("write", "nothing").replace("rows", "nothing")
    assert known == second
    assert "result" in json.loads(send(endpoint, hidden, signed_in(f"db:admin {WRITER}")).body)


LISTS = {
    "tools/list": ("tools", "name", ["ping"], ["ping", "read"], ["ping", "read", "write"]),
    "prompts/list": ("prompts", "name", ["hello"], ["hello"], ["hello", "migrate"]),
    "resources/list": ("resources", "uri", ["db://status"], ["db://status"], ["db://status"]),
    "resources/templates/list": (
        "resourceTemplates",
        "uriTemplate",
        [],
        ["db://rows/{number}"],
        ["db://rows/{number}"],
    ),
}


@pytest.mark.parametrize("method", LISTS)
def test_lists_have_only_callable_features_and_are_private(method: str) -> None:
    member, key, *expected = LISTS[method]
    endpoint = databases(hide_unauthorized=True).endpoint
    for scope, names in zip((NO_SCOPES, READER, WRITER), expected, strict=True):
        result = json.loads(send(endpoint, message(method), signed_in(scope)).body)["result"]
        assert [item[str(key)] for item in result[str(member)]] == names
        assert result["cacheScope"] == "private"


def test_pages_are_private_and_cursors_are_bound_to_the_scopes() -> None:
    endpoint = databases(hide_unauthorized=True, page_size=1).endpoint
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        asked = message("tools/list", **cursor)
        result = json.loads(send(endpoint, asked, signed_in(WRITER)).body)["result"]
        assert result["cacheScope"] == "private"
        names += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            break
        cursor = {"cursor": result["nextCursor"]}
        for other in (READER, NO_SCOPES):
            refused = send(endpoint, message("tools/list", **cursor), signed_in(other))
            assert json.loads(refused.body)["error"]["code"] == -32602
    assert names == ["ping", "read", "write"]


# -- a front door -----------------------------------------------------------------------------------------


def catalog_of(folder: Path, **given: Any) -> Path:
    owners = {"databases": databases(channels=("default",), **given)}
    path = folder / "catalog.json"
    content = {
        **catalog_lists(owners),
        "scopes": merged_scopes(owners),
        "hideUnauthorized": hides_unauthorized(owners),
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return catalog_of(tmp_path)


@pytest.fixture
def hiding(tmp_path: Path) -> Path:
    (tmp_path / "hiding").mkdir()
    return catalog_of(tmp_path / "hiding", hide_unauthorized=True)


def forwarding(sent: list[str]) -> Ports:
    def forward(owner: str, event: Any, custom: Any, timeout_s: int) -> Any:
        sent.append(owner)
        return {"statusCode": 200}

    return make_ports(
        auth=EventAuthenticator(AuthMode.JWT), authorization_server="https://id.test", forward=forward
    )


@every_request
def test_a_front_door_forwards_only_calls_with_sufficient_scopes(request_name: str, catalog: Path) -> None:
    body, needed = REQUESTS[request_name]
    endpoint, sent = FrontDoor("one", catalog).endpoint, list[str]()
    refused = send(endpoint, body, signed_in(NO_SCOPES), forwarding(sent))
    assert (refused.status, sent) == (403, [])
    assert f'scope="{needed}"' in refused.headers["www-authenticate"]
    assert send(endpoint, body, signed_in("db:admin billing"), forwarding(sent)).status == 200
    assert sent == ["databases"]


@every_request
@pytest.mark.parametrize("chosen", [None, True])
def test_a_front_door_hides_the_features_that_its_owners_hide(
    request_name: str, hiding: Path, chosen: bool | None
) -> None:
    body, _ = REQUESTS[request_name]
    endpoint, sent = FrontDoor("one", hiding, hide_unauthorized=chosen).endpoint, list[str]()
    refused = send(endpoint, body, signed_in(NO_SCOPES), forwarding(sent))
    assert (json.loads(refused.body)["error"]["code"], sent) == (-32602, [])
    send(endpoint, body, signed_in("db:admin billing"), forwarding(sent))
    assert sent == ["databases"]


@every_request
def test_an_owner_hides_the_features_that_its_front_door_hides(request_name: str) -> None:
    """The catalog may be older, or have a broader template for the same URI."""
    body, _ = REQUESTS[request_name]
    for hides in (True, False):
        invocation = Invocation("id", 1e18, forwarded=Forwarded(hide_unauthorized=hides))
        request = HttpRequest("POST", headers(body), json.dumps(body), signed_in(NO_SCOPES))
        answer = databases().endpoint.respond(request, ports(), invocation)
        assert ("www-authenticate" in answer.headers) is not hides
        assert (json.loads(answer.body)["error"]["code"] == -32602) is hides


@pytest.mark.parametrize("hides", [True, False])
def test_a_uri_of_a_hidden_resource_does_not_match_another_template(hides: bool, tmp_path: Path) -> None:
    owner = Server("files", ports=ports)

    @owner.resource("file:///secret/{name}", scopes=["private"])
    def secret(name: str) -> str:
        return "hidden"

    @owner.resource("file:///{+path}")
    def anything(path: str) -> str:
        return "open"

    path = tmp_path / "catalog.json"
    path.write_text(json.dumps({**catalog_lists({"files": owner}), "hideUnauthorized": hides}))

    def forward(name: str, event: Any, custom: Any, timeout_s: int) -> Any:
        client = SimpleNamespace(client_context=SimpleNamespace(custom=custom))
        return owner.lambda_handler(event, client)

    given = make_ports(
        auth=EventAuthenticator(AuthMode.JWT), authorization_server="https://id.test", forward=forward
    )
    door = FrontDoor("one", path, ports=lambda: given)
    event = http_event(message("resources/read", uri="file:///secret/x"), authorizer=signed_in(NO_SCOPES))
    response = door.lambda_handler(event, None)
    assert ("www-authenticate" in response["headers"]) is not hides
    assert json.loads(response["body"])["error"]["code"] == (-32602 if hides else -32600)
    event = http_event(message("resources/read", uri="file:///secret/x"), authorizer=signed_in("private"))
    assert "hidden" in door.lambda_handler(event, None)["body"]
    event = http_event(message("resources/read", uri="file:///other/x"), authorizer=signed_in(NO_SCOPES))
    assert "open" in door.lambda_handler(event, None)["body"]


@pytest.mark.parametrize("method", LISTS)
def test_lists_of_a_front_door_that_hides_features_are_private(
    method: str, catalog: Path, hiding: Path
) -> None:
    member, key, *expected = LISTS[method]
    scoped_features, open_features = (FrontDoor("one", path).endpoint for path in (hiding, catalog))
    for scope, names in zip((NO_SCOPES, READER, WRITER), expected, strict=True):
        for _ in range(2):
            result = json.loads(send(scoped_features, message(method), signed_in(scope)).body)["result"]
            assert [item[str(key)] for item in result[str(member)]] == names
            assert result["cacheScope"] == "private"
        everything = json.loads(send(open_features, message(method), signed_in(scope)).body)["result"]
        assert [item[str(key)] for item in everything[str(member)]] == expected[-1]
        assert everything["cacheScope"] == "public"


def test_a_front_door_cannot_hide_features_that_its_owners_show(catalog: Path, hiding: Path) -> None:
    """Callers can reach an owner at its own path."""
    for path, chosen in ((catalog, True), (hiding, False)):
        with pytest.raises(DefinitionError, match=f"hide_unauthorized={chosen}.*make catalog"):
            FrontDoor("one", path, hide_unauthorized=chosen)


def test_owners_without_scopes_need_not_hide_features(tmp_path: Path) -> None:
    server = Server("open")
    server.tool(name="ping")(lambda: "pong")
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(catalog_lists({"open": server})))
    for chosen in (True, False, None):
        FrontDoor("one", path, hide_unauthorized=chosen)
    assert hides_unauthorized({"open": server, "closed": databases(hide_unauthorized=True)})


def test_all_owners_must_have_the_same_hide_setting() -> None:
    owners = {"one": databases(hide_unauthorized=True), "other": databases()}
    with pytest.raises(CatalogError, match=r"set for \['one'\] and not for \['other'\]"):
        hides_unauthorized(owners)


# -- scopes requested at sign-in, and invalid declarations ------------------------------------------------


def requested_at_sign_in(endpoint: Endpoint) -> Sequence[str]:
    request = HttpRequest("GET", {}, "", path="/.well-known/oauth-protected-resource")
    document = json.loads(endpoint.respond(request, ports(), Invocation("id", 1e18)).body)
    found: Sequence[str] = document.get("scopes_supported", [])
    return found


def test_clients_request_the_narrowest_scopes_at_first(catalog: Path) -> None:
    assert requested_at_sign_in(databases().endpoint) == ["billing", "db:read"]
    assert requested_at_sign_in(FrontDoor("one", catalog).endpoint) == ["billing", "db:read"]
    assert requested_at_sign_in(Server("x").endpoint) == []


@pytest.mark.parametrize("chosen", [["db:read"], []])
def test_clients_request_the_configured_scopes(chosen: list[str], catalog: Path) -> None:
    assert requested_at_sign_in(databases(initial_scopes=chosen).endpoint) == chosen
    assert requested_at_sign_in(FrontDoor("one", catalog, initial_scopes=chosen).endpoint) == chosen


def test_malformed_scopes_are_refused_at_import(catalog: Path) -> None:
    server = Server("x")
    with pytest.raises(DefinitionError):
        server.tool(scopes=["two words"])(lambda: "")
    with pytest.raises(DefinitionError):
        server.prompt(scopes="read")(lambda: "")
    with pytest.raises(DefinitionError):
        server.resource("x://y", scopes=['"'])(lambda: "")
    with pytest.raises(DefinitionError):
        Server("x", scopes={"a": ["b"], "b": ["a"]})
    with pytest.raises(DefinitionError):
        FrontDoor("one", catalog, initial_scopes=["é"])


def test_a_feature_with_scopes_cannot_have_a_public_cache() -> None:
    with pytest.raises(DefinitionError):
        Server("x").resource("x://y", scopes=["a"], cache_scope="public")(lambda: "")


def test_a_task_continues_after_its_caller_lost_the_scopes() -> None:
    server = Server("x")

    @server.tool(scopes=["db:write"], task="required")
    def lasting(ctx: Context) -> str:
        ctx.run_as_task()
        return "done"

    extensions = {"extensions": {TASKS_EXTENSION: {}}}
    play = Player(
        server,
        capabilities=extensions,
        authorizer=signed_in("db:write"),
        ports={"auth": EventAuthenticator(AuthMode.JWT)},
    )
    created = play.call("lasting")
    play.authorizer = signed_in(NO_SCOPES)
    assert play.task(created.result["taskId"]).status == "completed"
