"""What a cold start loads and creates: counted, because times vary."""

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import mcp_roundtrip
from support.interpreters import run_program

PACKAGE = Path(mcp_roundtrip.__file__).parent

NEVER_LOADED = {
    "async tools, 40 ms": ("asyncio", "mcp_roundtrip.engine.async_context"),
    "calls to AWS, 130 ms": ("boto3", "botocore.session", "mcp_roundtrip.aws.signed_client"),
    "minting or verifying a token, 12 ms": ("cryptography",),
    "tools with types that JSON does not have, 50 ms": ("pydantic", "pydantic_core"),
    "AuthMode bearer": ("jwt", "mcp_roundtrip.auth.bearer"),
    "nothing here, 50 ms": ("aws_lambda_powertools.event_handler",),
    "nothing here, 20 ms": ("aws_lambda_powertools.utilities.data_classes",),
    "a tool with its own input_schema": ("jsonschema", "mcp_roundtrip.arguments.own_input_schema"),
    "steps in threads": ("concurrent.futures",),
    # Up to Python 3.12 importlib.metadata, with which pydantic finds plugins, imports the e-mail parser.
    "outgoing HTTPS": ("ssl", "http.client", "urllib3", *["email.message"] * (sys.version_info >= (3, 13))),
    "audit records": ("mcp_roundtrip.observing.audit_records", "mcp_roundtrip.server.auditing"),
    "traces": ("opentelemetry", "mcp_roundtrip.observing.opentelemetry_tracer", "mcp_roundtrip.server.spans"),
    "large results": ("mcp_roundtrip.s3",),
    "tasks": ("mcp_roundtrip.tasks", "mcp_roundtrip.server.task_methods"),
    "browsers": ("mcp_roundtrip.question_ui", "mcp_roundtrip.server.question_page"),
    "a round trip": ("mcp_roundtrip.state.codec", "mcp_roundtrip.deployment.state_codec_factory"),
    "calls that ask": (
        *("mcp_roundtrip.engine.asking", "mcp_roundtrip.engine.elicitation"),
        *("mcp_roundtrip.arguments.elicitation_form", "mcp_roundtrip.server.question_presenters"),
        "mcp_roundtrip.server.parked_carrier",
    ),
    "steps": ("mcp_roundtrip.engine.steps",),
    "content blocks, 3 ms, and declared metadata": (
        *("mcp_roundtrip.content.blocks", "mcp_roundtrip.content.member_checks"),
    ),
    "clients that connect, and lists": (
        *("mcp_roundtrip.server.discover_and_initialize", "mcp_roundtrip.server.lists"),
        "mcp_roundtrip.schema.json_schema_generator",
    ),
    "prompts": ("mcp_roundtrip.server.prompts_and_resources",),
    "resources": ("mcp_roundtrip.protocol.resource_uris",),
    "requests that are no MCP messages": ("mcp_roundtrip.server.public_documents",),
    "skills": ("mcp_roundtrip.server.skills",),
    "the front door": ("mcp_roundtrip.entry.front_door",),
}
"""A part of the package or a library -> its modules, which a plain call must never load."""

PACKAGE_BUDGET = 66
"""Modules of this package that a plain call may load; one adds up to a millisecond. (65 today.)"""

LIBRARY_BUDGET = 64
"""Modules of other distributions, most of Powertools and msgspec. (63 today.)"""

PLAIN_CALL = """
import os, sys, json
os.environ |= {"MCP_AUTH_MODE": "none", "POWERTOOLS_SERVICE_NAME": "test"}
from mcp_roundtrip import Server, Context
server = Server("plain")
@server.tool
def add(ctx: Context, a: int, b: int) -> int:
    return a + b
prefix = "io.modelcontextprotocol/"
meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {}}
params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
answer = server.lambda_handler({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, None)
assert answer["result"]["structuredContent"] == 3, answer
import dataclasses, re
own = [(name, vars(module)) for name, module in sys.modules.items() if name.startswith("mcp_roundtrip.")]
found = {
    "modules": sorted(sys.modules),
    "dataclasses": [
        f"{name}.{member}"
        for name, members in own
        for member, value in members.items()
        if isinstance(value, type) and value.__module__ == name and dataclasses.is_dataclass(value)
    ],
    "patterns": [
        f"{name}.{member}"
        for name, members in own
        for member, value in members.items()
        if isinstance(value, re.Pattern)
    ],
}
print(json.dumps(found), file=sys.stderr)
"""


def run_plain_call(program: str = PLAIN_CALL) -> dict[str, list[str]]:
    """Return what a new process has loaded and created after the first call of a server with one tool."""
    done = run_program(program)
    found: dict[str, list[str]] = json.loads(done.stderr)
    return found


@pytest.fixture(scope="module")
def plain_call():
    return run_plain_call()


@pytest.fixture(scope="module")
def loaded(plain_call):
    return frozenset(plain_call["modules"])


def test_a_plain_call_does_not_load_unneeded_modules(loaded):
    named = {name: purpose for purpose, names in NEVER_LOADED.items() for name in names}
    assert {name: purpose for name, purpose in named.items() if name in loaded} == {}
    # The test could never find a stale name.
    assert [name for name in named if find_spec(name) is None] == []


def test_a_plain_call_stays_within_its_budget_of_modules(loaded):
    ours = {name for name in loaded if name.split(".")[0] == "mcp_roundtrip"}
    libraries = {name for name in loaded - ours if name.split(".")[0] not in sys.stdlib_module_names}
    assert len(ours) <= PACKAGE_BUDGET, sorted(ours)
    assert len(libraries) <= LIBRARY_BUDGET, sorted(libraries)


def test_a_confirmation_does_not_load_pydantic():
    code = """
import sys
from mcp_roundtrip.engine import asking
from mcp_roundtrip.engine.elicitation import Elicit
question = Elicit("delete", "Delete it?", bool, user_only=True)
assert question.params()["requestedSchema"]["properties"] == {"value": {"type": "boolean"}}
assert question.parse_response({"action": "accept", "content": {"value": True}}) is True
print(*sys.modules)
"""
    assert {"pydantic", "pydantic_core"}.isdisjoint(run_program(code).stdout.split())


def test_audit_records_do_not_load_what_stores_tasks():
    code = """
import sys
from mcp_roundtrip.deployment import settings, wiring
wiring.make_ports(settings.load_settings({"MCP_AUTH_MODE": "none", "MCP_AUDIT": "principal:group"}))
import mcp_roundtrip.server.auditing
print(*sys.modules)
"""
    loaded = set(run_program(code).stdout.split())
    assert "mcp_roundtrip.aws.audit_log" in loaded
    assert loaded.isdisjoint({"mcp_roundtrip.aws.dynamodb", "mcp_roundtrip.tasks.service"})


def test_a_tool_without_a_context_does_not_load_the_context():
    without = PLAIN_CALL.replace("ctx: Context, ", "").replace(", Context", "")
    assert "Context" not in without
    assert "mcp_roundtrip.engine.context" not in run_plain_call(without)["modules"]


PROMPT_RESOURCE_AND_STEP = """
import os, sys
os.environ |= {"MCP_AUTH_MODE": "none", "POWERTOOLS_SERVICE_NAME": "test"}
from mcp_roundtrip import Context, Server
server = Server("plain")
@server.prompt
def greet(name: str, count: int = 1) -> str:
    return name * count
@server.resource("item://{number}")
def item(number: int) -> dict:
    return {"number": number}
@server.tool
def sums(ctx: Context, numbers: list[int]) -> int:
    return ctx.step("sum", sum_of, numbers)["sum"]
def sum_of(numbers: list[int]) -> dict[str, int]:
    return {"sum": sum(numbers)}
prefix = "io.modelcontextprotocol/"
meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {}}
def send(method, **params):
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return server.lambda_handler(request, None)["result"]
messages = send("prompts/get", name="greet", arguments={"name": "a", "count": "3"})["messages"]
assert messages[0]["content"]["text"] == "aaa"
assert send("resources/read", uri="item://5")["contents"][0]["text"] == '{"number": 5}'
assert send("tools/call", name="sums", arguments={"numbers": [1, 2]})["structuredContent"] == 3
print(*sys.modules, file=sys.stderr)
"""


def test_prompts_resources_and_steps_with_types_that_json_has_do_not_load_pydantic():
    loaded = set(run_program(PROMPT_RESOURCE_AND_STEP).stderr.split())
    assert {"mcp_roundtrip.server.prompts_and_resources", "mcp_roundtrip.engine.steps"} <= loaded
    assert loaded.isdisjoint({"pydantic", "pydantic_core", "jsonschema_rs"})


DATACLASSES = {
    *("Audio", "EmbeddedResource", "Image", "PromptMessage", "ResourceContents", "ResourceLink", "Text"),
    *("Principal", "Root", "Sampled", "Stored", "TraceContext"),
}
"""The records that are no msgspec Structs: values of authors, which pydantic serializes.

Creating such a class takes 0.5 ms, ten times as long.
"""

PATTERN_BUDGET = 6
"""Regular expressions compiled at import, 0.1 ms each: those that a plain call uses. (6 today.)

Others are strings, which `re.fullmatch` compiles once, when a call needs them.
"""


def test_records_are_structs_except_the_values_of_authors():
    created = {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(each) for each in node.decorator_list)
    }
    assert created == DATACLASSES


def test_a_plain_call_creates_one_dataclass_and_few_patterns(plain_call):
    assert plain_call["dataclasses"] == ["mcp_roundtrip.auth.callers.Principal"]
    assert len(plain_call["patterns"]) <= PATTERN_BUDGET, plain_call["patterns"]
