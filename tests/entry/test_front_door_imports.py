"""The modules that a front door loads. Each takes a part of a cold start, and a front door runs no tool."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, META_CLIENT_CAPABILITIES
from mcp_roundtrip.server.options import ANSWER_TOOL
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support import callers
from support.authorization_server import AuthorizationServer, authorization_server
from support.aws_clients import FUNCTION
from support.client_requests import APPS, TASKS
from support.interpreters import run_program
from support.messages import META, call, headers, http_event, message
from support.project import ROOT

FRONT_DOOR = ROOT / "functions/front_door"
AUDIENCE = "https://mcp.test/mcp"

HEAVY = (
    *("pydantic", "mcp_roundtrip.schema", "mcp_roundtrip.server.tools"),
    # The journal and the deadline import nothing else of the engine.
    *(
        "mcp_roundtrip.engine.outcomes",
        "mcp_roundtrip.engine.pass_state",
        "mcp_roundtrip.engine.question_channels",
        "mcp_roundtrip.engine.step_values",
    ),
    *("asyncio", "aws_lambda_powertools.event_handler", "aws_lambda_powertools.utilities.data_classes"),
    *("boto3", "botocore.session", "concurrent.futures", "jwt", "urllib.request"),
)
"""Prefixes of modules that no request to a front door needs; the first bearer token needs FIRST_TOKEN."""

FIRST_TOKEN = ("jwt", "urllib.request")
"""PyJWT, which verifies access tokens, and what it imports."""

FOLLOWS_TASKS = {**META, META_CLIENT_CAPABILITIES: TASKS}
SHOWS_APPS = {**META, META_CLIENT_CAPABILITIES: APPS}
TASK_ID = "abcdefghijklmnopqrstuvwxyz012345"
CLIENT = {"protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "a call": call("get_weather", {"place": "Bern"}),
    "a prompt": message("prompts/get", name="triage", arguments={}),
    "a resource": message("resources/read", uri="provision://prices"),
    "a resource of a template": message("resources/read", uri="weather://forecast/bern"),
    "a completion": message(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "triage"},
        argument={"name": "project", "value": ""},
    ),
    "tools/list": message("tools/list"),
    "prompts/list": message("prompts/list"),
    "resources/list": message("resources/list"),
    "resources/templates/list": message("resources/templates/list"),
    "server/discover": message("server/discover"),
    "subscriptions/listen": message("subscriptions/listen", notifications={}),
    "initialize": message("initialize", meta=None, **CLIENT),
    "a legacy list": message("tools/list", meta=None),
    "a legacy call": call("get_weather", {"place": "Bern"}, meta=None),
    "a ping": message("ping", meta=None),
    "a notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "tasks/get": message("tasks/get", taskId=TASK_ID, meta=FOLLOWS_TASKS),
    "tasks/update": message("tasks/update", taskId=TASK_ID, inputResponses={}, meta=FOLLOWS_TASKS),
    "tasks/cancel": message("tasks/cancel", taskId=TASK_ID, meta=FOLLOWS_TASKS),
    "skills": message("skills/list"),
    "a view": message("resources/read", uri="ui://mcp-roundtrip/questions", meta=SHOWS_APPS),
    "an answer of a view": call(ANSWER_TOOL, {"tool": "request_approval"}, meta=SHOWS_APPS),
    "an unknown tool": call("no_such_tool"),
}

PROGRAM = """
import json, sys
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
import app
context = SimpleNamespace(
    aws_request_id="1", client_context=None, get_remaining_time_in_millis=lambda: 29_000
)
known = set(sys.modules)
loaded = {"initialization": [200, sorted(known)]}
for name, event in json.load(sys.stdin).items():
    status = app.handler(event, context)["statusCode"]
    loaded[name] = [status, sorted(sys.modules.keys() - known)]
    known |= sys.modules.keys()
json.dump(loaded, sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Function:
    """The addresses of an issuer of tokens, and of the AWS services that a front door calls."""

    issuer: AuthorizationServer
    services: str

    def load(self, mode: AuthMode, initialization: str = "on-demand") -> dict[str, list[str]]:
        """Return the modules that the initialization and then each request loads first."""
        events = {name: self._event(mode, body) for name, body in REQUESTS.items()}
        variables = {**self._variables(mode), "AWS_LAMBDA_INITIALIZATION_TYPE": initialization}
        done = run_program(PROGRAM, str(FRONT_DOOR), stdin=json.dumps(events), **variables)
        answers: dict[str, tuple[int, list[str]]] = json.loads(done.stderr)
        refused = {name: status for name, (status, _) in answers.items() if status not in (200, 202)}
        unknown = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel", "an unknown tool"), 400)
        assert refused == unknown, done.stdout
        return {name: modules for name, (_, modules) in answers.items()}

    def _event(self, mode: AuthMode, body: Mapping[str, Any]) -> dict[str, Any]:
        is_legacy = "_meta" not in body.get("params", {})
        given = {"mcp-protocol-version": LEGACY_VERSION} if is_legacy else headers(body)
        if mode is AuthMode.BEARER:
            given["authorization"] = f"Bearer {self.issuer.token(AUDIENCE)}"
        return http_event(body, headers=given, authorizer=callers.authorizer(mode, "alice"))

    def _variables(self, mode: AuthMode) -> dict[str, str]:
        catalog = json.loads((FRONT_DOOR / "catalog.json").read_text())
        owners = {row["owner"]: row["owner"] for rows in catalog.values() for row in rows if "owner" in row}
        own = {
            AuthMode.BEARER: {"MCP_TOKEN_ISSUER": self.issuer.issuer},
            AuthMode.LAMBDA: {"MCP_PRINCIPAL_CONTEXT_KEY": "user"},
        }
        return {
            **FUNCTION,
            "AWS_ENDPOINT_URL": self.services,
            "MCP_AUTH_MODE": mode,
            "MCP_ISSUER": "urn:test",
            "MCP_AUDIENCE": AUDIENCE,
            "MCP_OWNERS": json.dumps(owners),
            "MCP_TASK_TABLE": "tasks",
            **own.get(mode, {}),
        }


@pytest.fixture(scope="module")
def deployment():
    listening = HttpServer(_respond, max_body=1_000_000).start()
    with closing(listening), authorization_server() as issuer:
        yield Function(issuer, listening.url)


def _respond(request: Request) -> Response:
    """Answer as DynamoDB without any item, or as Lambda with the response of an owner."""
    if request.header("x-amz-target"):
        return Response(200, (("content-type", "application/x-amz-json-1.0"),), b"{}")
    answer = {"statusCode": 200, "headers": {}, "body": "{}"}
    return Response(200, (("content-type", "application/json"),), json.dumps(answer).encode())


@pytest.mark.parametrize("mode", AuthMode)
def test_a_front_door_loads_no_module_that_only_tools_need(deployment, mode):
    loaded = deployment.load(mode)
    heavy = {name: {each for each in modules if each.startswith(HEAVY)} for name, modules in loaded.items()}
    if mode is AuthMode.BEARER:
        first = next(iter(REQUESTS))
        assert heavy[first] >= set(FIRST_TOKEN)
        heavy[first] = {each for each in heavy[first] if not each.startswith(FIRST_TOKEN)}
    assert {name: modules for name, modules in heavy.items() if modules} == {}


@pytest.mark.parametrize("initialization", ["snap-start", "provisioned-concurrency"])
@pytest.mark.parametrize("mode", [AuthMode.BEARER, AuthMode.JWT])
def test_a_prewarmed_front_door_loads_all_modules_before_the_first_request(deployment, mode, initialization):
    loaded = deployment.load(mode, initialization)
    heavy = [each for each in loaded.pop("initialization") if each.startswith(HEAVY)]
    assert [each for each in heavy if not each.startswith(FIRST_TOKEN)] == []
    assert {name: modules for name, modules in loaded.items() if modules} == {}
