import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip_tools.smoke.run import Call, Settings, main, read_settings
from support.scripted_server import Reply, message, respond, scripted
from support.served_application import FRONT_DOOR, TEMPLATE, serve
from tools.smoke.conftest import findings_of

WEATHER = Call("get_weather", {"location": "Hyderabad"})
ASK = "0123456789"


@contextmanager
def application(**variables: str) -> Iterator[str]:
    """Serve the examples with these variables in every function; yield the URL of the front door."""
    with serve(TEMPLATE, parameters={"AuthMode": "none"}, log=lambda line: None, variables=variables) as app:
        yield app.url(FRONT_DOOR)


@pytest.fixture(scope="module")
def url():
    with application() as found:
        yield found


def test_every_check_of_a_correct_endpoint_is_ok(url):
    found = findings_of(Settings(url, call=WEATHER))
    assert {each.status for each in found.values()} == {"ok"}
    assert list(found) == ["anonymous", "discovery", "tools", "function", "call"]
    assert "2 rounds" in found["call"].text


CALLS = {
    "headers and a task": (
        "provision_database",
        {"name": "orders", "region": "eu-west-1"},
        "note",
        "round 2",
    ),
    "without a question": ("get_weather", {"location": "Tokyo"}, "note", ""),
    "an unknown tool": ("get_wether", {}, "wrong", "tool get_wether"),
    "a tool error": ("get_weather", {"place": 1}, "wrong", "tool error"),
}


@pytest.mark.parametrize(("tool", "arguments", "status", "text"), CALLS.values(), ids=CALLS)
def test_the_end_of_a_call_is_described(url, tool, arguments, status, text):
    found = findings_of(Settings(url, call=Call(tool, arguments)))["call"]
    assert (found.status, text in found.text) == (status, True), found


def test_a_single_function_is_an_endpoint_and_no_tool_has_to_be_called(url):
    found = findings_of(Settings(url.replace(FRONT_DOOR, "/tools/weather"), call=WEATHER))
    assert {each.status for each in found.values()} == {"ok"}
    found = findings_of(Settings(url))
    assert (found["tools"].status, found["call"].status) == ("ok", "note")


FAULTS = {
    "a front door without owners": ({"MCP_OWNERS": "{}"}, "function", "MCP_OWNERS"),
    "KMS that does not answer": ({"AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:9"}, "call", "state_unavailable"),
    "a setting that is wrong": ({"MCP_AUTH_MODE": "nonsense"}, "anonymous", "misconfigured"),
}


@pytest.mark.parametrize(("variables", "name", "text"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_a_deployment_is_found_by_its_check(variables, name, text):
    with application(**variables) as broken:
        found = findings_of(Settings(broken, call=WEATHER))
    assert list(found)[-1] == name
    assert found[name].status == "wrong"
    assert text in found[name].text


# -- servers that are not of this package -------------------------------------------------------------------


def listed(*tools: object) -> Reply:
    result = {"resultType": "complete", "tools": [*tools], "ttlMs": 0, "cacheScope": "private"}
    return message(1, result=result)


DISCOVERED = {"supportedVersions": [PROTOCOL_VERSION], "capabilities": {"tools": {}}}
TOOL = {"name": "ask", "inputSchema": {"type": "object"}}
QUESTION = {
    "resultType": "input_required",
    "requestState": "s",
    "inputRequests": {
        "q": {
            "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
}
ERROR = {"code": -32602, "message": "The state is not accepted"}
BEFORE_CALL = [message(1, result=DISCOVERED)] * 2 + [listed(TOOL), message(2, error=ERROR)]

SERVERS: dict[str, tuple[list[Reply], str, str]] = {
    "an older version": (
        [message(1, result={"supportedVersions": ["2025-11-25"]})] * 2,
        "discovery",
        f"MCP {PROTOCOL_VERSION}, but 2025-11-25",
    ),
    "no tools": ([message(1, result=DISCOVERED)] * 2 + [listed()], "tools", "make catalog"),
    "a refused state": (
        [
            *BEFORE_CALL,
            message(3, result=QUESTION),
            message(4, error={"code": -32603, "message": "Internal error."}),
        ],
        "call",
        "state_refused",
    ),
    "missing scopes of the tool": (
        [*BEFORE_CALL, respond(403, {}, WWW_Authenticate='Bearer error="insufficient_scope", scope="a b"')],
        "call",
        "of: a b",
    ),
    "a question without an end": (
        [*BEFORE_CALL, *(message(number, result=QUESTION) for number in range(3, 13))],
        "call",
        "still asks",
    ),
}


@pytest.mark.parametrize(("script", "name", "text"), SERVERS.values(), ids=SERVERS)
def test_a_fault_of_a_server_is_found_by_its_check(script, name, text):
    with scripted(*script) as server:
        found = findings_of(Settings(f"{server.url}/mcp", call=Call("ask", {})))
    assert list(found)[-1] == name
    assert text in found[name].text


def test_a_round_has_no_state_if_the_server_gave_none():
    without_state = {name: value for name, value in QUESTION.items() if name != "requestState"}
    done = {"resultType": "complete", "content": []}
    script = [
        *BEFORE_CALL,
        message(3, result=QUESTION),
        message(4, result=without_state),
        message(5, result=done),
    ]
    with scripted(*script) as server:
        findings_of(Settings(f"{server.url}/mcp", call=Call("ask", {})))
    states = [json.loads(each.body)["params"].get("requestState", "none") for each in server.requests[-2:]]
    assert states == ["s", "none"]


def test_settings_come_from_the_environment_and_secrets_are_not_printed():
    given = {
        "URL": "https://t.example/mcp",
        "TOKEN": ASK,
        "CALL": 'ask {"a": 1}',
        "TOKEN_PARAMETERS": "scope=a b&audience=c",
        "CLIENT_ID": "app",
        "ISSUER": "https://id.example",
    }
    settings = read_settings(given)
    assert settings.call == Call("ask", {"a": 1})
    assert settings.token_parameters == {"scope": "a b", "audience": "c"}
    assert (settings.client_id, settings.issuer) == ("app", "https://id.example")
    assert settings.token == ASK
    assert ASK not in repr(settings)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"URL": "https://t.example", "CALL": "ask {"},
        {"URL": "x", "CALL": "ask []"},
        {"URL": "https://t.example", "CLIENT_ID": "app", "CLIENT_SECRET": "s"},
    ],
)
def test_settings_that_cannot_be_read_are_a_usage_error(given, capsys):
    assert main([], given) == 2
    assert "\n  CALL=" in capsys.readouterr().err


def test_the_command_prints_each_finding_and_fails_if_one_is_wrong(url, capsys):
    assert main([], {"URL": url, "CALL": f"get_weather {json.dumps(WEATHER.arguments)}"}) == 0
    assert main([], {"URL": url, "TOKEN": "any"}) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {"ok", "note", "wrong"}
    assert any("wrong" in line and "AuthMode is none" in line for line in lines), "a token was passed"
