"""Initialization of execution environments, with the real runtime client in processes."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import mcp_roundtrip
from mcp_roundtrip.deployment.cold_start_imports import THRESHOLD
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest, Ready, RuntimeApi
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.aws_clients import FUNCTION
from support.fake_kms import mac_key, serve, signing_key
from support.interpreters import run_program
from support.messages import call

APP = """
import random, sys
from mcp_roundtrip import Context, Server

random.seed(1)  # as all environments have it that are made from one snapshot
server = Server("x", channels=("default",))  # the page would need a table


@server.tool
def greet(ctx: Context) -> str:
    return ctx.elicit("name", "Who?", str)


def handler(event, context):
    before = set(sys.modules)
    answer = server.lambda_handler(event, context)
    return {"answer": answer, "imported": sorted(set(sys.modules) - before), "random": random.random()}
"""


class SnapshotApi(RuntimeApi):
    """A runtime API that takes a snapshot and restores it at once."""

    def _respond(self, request: Request) -> Response:
        if request.target.endswith("/restore/next"):
            return Response(200, (), b"{}")
        return super()._respond(request)


@dataclass(frozen=True, slots=True)
class First:
    """The first response of an execution environment, and what it cost."""

    imported: set[str]
    random: float
    cold_start: bool
    calls_before: int
    calls: Counter[str]


FirstAnswer = Callable[..., First]
"""Returns the first response of environment `number` of an initialization type."""


def first_answer_of(folder: Path, environment: Mapping[str, str], kms: FakeKms) -> First:
    """Start an execution environment, and return its first response."""
    api = SnapshotApi()
    process = subprocess.Popen(
        [sys.executable, "-m", "awslambdaric", "app.handler"],
        cwd=folder,
        env={**environment, "AWS_LAMBDA_RUNTIME_API": api.address},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert isinstance(api.reports.get(timeout=60), Ready)
        calls_before = kms.calls.total()
        api.pending.put((InvokeRequest("F", json.dumps(call("greet")).encode()), 2**42))
        report = api.reports.get(timeout=60)
    finally:
        process.kill()
        logged, _ = process.communicate()
        api.close()
    assert isinstance(report, InvocationResult), logged
    assert not report.failed, logged
    answer = json.loads(report.payload)
    assert answer["answer"]["result"]["resultType"] == "input_required", answer["answer"]
    lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    [answered] = [line for line in lines if line.get("message") == "request_completed"]
    imported = set(answer["imported"])
    return First(imported, answer["random"], answered["cold_start"], calls_before, kms.calls.copy())


@pytest.fixture(scope="module")
def first_answer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstAnswer]:
    folder, kms = tmp_path_factory.mktemp("function"), FakeKms()
    (folder / "app.py").write_text(APP)
    with serve(kms) as server:
        settings = {
            "PATH": os.environ["PATH"],
            **FUNCTION,
            "AWS_ENDPOINT_URL_KMS": server.url,
            "MCP_AUTH_MODE": "none",
            "MCP_ISSUER": "urn:test",
            "MCP_AUDIENCE": "https://x.test/mcp",
            "MCP_STATE_KEY_ARN": signing_key(kms),
            "MCP_STATE_ENCRYPTION_KEY_ARN": mac_key(kms),
        }

        @cache
        def answer(initialization_type: str, number: int = 1) -> First:
            kms.calls.clear()
            environment = {**settings, "AWS_LAMBDA_INITIALIZATION_TYPE": initialization_type}
            return first_answer_of(folder, environment, kms)

        yield answer


AHEAD = ["snap-start", "provisioned-concurrency"]


@pytest.mark.parametrize("initialization_type", AHEAD)
def test_a_prewarmed_environment_imports_nothing_in_its_first_request_and_loads_no_key_before_it(
    first_answer, initialization_type
):
    first = first_answer(initialization_type)
    assert first.imported == set()
    assert first.calls_before == 0
    assert first.calls.keys() == {"Sign", "GetPublicKey", "GenerateMac"}
    assert first_answer("on-demand").imported >= {"socket", "cryptography"}


def test_a_start_is_cold_if_the_first_request_waits_for_it(first_answer):
    types = ("on-demand", "snap-start", "provisioned-concurrency")
    assert [first_answer(each).cold_start for each in types] == [True, True, False]


def test_environments_of_one_snapshot_have_different_random_numbers(first_answer):
    one, other = (first_answer("snap-start", number).random for number in (1, 2))
    assert one != other
    one, other = (first_answer("on-demand", number).random for number in (1, 2))
    assert one == other


OFF_BY_DEFAULT = """
    observing.opentelemetry_tracer server.auditing server.spans
"""
NOT_PREWARMED: Mapping[str, Mapping[str, str]] = {
    "server": {
        "the definition of a feature imports them, during initialization": """
            content.member_checks
            arguments.own_input_schema
            server.definition_lint server.prompts_and_resources
        """,
        "errors need it": "observing.traceback_redaction",
        "no client waits for a worker": "entry.worker",
        "browsers need it": "server.question_page",
        "most environments need no boto3": "aws.boto3_client",
        "off by default": OFF_BY_DEFAULT,
    },
    "front_door": {
        "options of the front door import them": "content.member_checks",
        "errors need them": "observing.traceback_redaction",
        "off by default": OFF_BY_DEFAULT,
        "browsers need it": "server.question_page",
        "most environments need no boto3": "aws.boto3_client",
        "tools need them": "deployment.state_codec_factory",
    },
}
"""Kind of function -> reason -> modules that others import in functions, and that are not prewarmed."""


@pytest.mark.parametrize("kind", NOT_PREWARMED)
def test_modules_that_others_import_in_functions_are_prewarmed(kind):
    code = f"""
import sys, mcp_roundtrip.entry.{kind}
from mcp_roundtrip.deployment import cold_start_imports
cold_start_imports.prewarm({kind!r})
print(*sys.modules)
"""
    loaded = set(run_program(code, AWS_LAMBDA_INITIALIZATION_TYPE=AHEAD[1]).stdout.split())
    ours = {name for name in loaded if name.startswith("mcp_roundtrip.")}
    missing = {each for name in ours for each in imports_in_functions(name)} - loaded
    excepted = {name for names in NOT_PREWARMED[kind].values() for name in names.split()}
    assert {name.removeprefix("mcp_roundtrip.") for name in missing} == excepted


def imports_in_functions(name: str) -> Iterator[str]:
    """Yield the modules that functions of a module import."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    functions = (
        node
        for node in ast.walk(ast.parse(Path(spec.origin).read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    for node in (each for function in functions for each in ast.walk(function)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [each for each in members if is_module(each)]
            yield from modules or [node.module]


@cache
def is_module(name: str) -> bool:
    try:
        return name.startswith("mcp_roundtrip") and find_spec(name) is not None
    except ModuleNotFoundError:  # a member of a module that is no package
        return False


FIRST_CALL = """
import gc, sys
exec(sys.argv[1])
import mcp_roundtrip
before = sum(generation["collections"] for generation in gc.get_stats())
from mcp_roundtrip import Context, Server
server = Server("x")

@server.tool
def ask(ctx: Context, a: int = 0) -> str:
    return ctx.elicit("name", "Who?", str) if a else "done"

meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
meta = {"io.modelcontextprotocol/" + name: value for name, value in meta.items()}
params = {"name": "ask", "arguments": {}, "_meta": meta}
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
assert "result" in server.lambda_handler(body, None)
after = sum(generation["collections"] for generation in gc.get_stats())
print(after - before, gc.get_threshold()[0], file=sys.stderr)
"""


def first_call(before: str = "", **variables: str) -> tuple[int, int]:
    """Return the collections up to the first response after the statement `before`, and the threshold."""
    done = run_program(FIRST_CALL, before, MCP_AUTH_MODE="none", **variables)
    collections, threshold = map(int, done.stderr.split())
    return collections, threshold


def test_a_cold_start_on_lambda_collects_no_garbage_and_a_higher_threshold_of_the_function_stays():
    on_lambda = {"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001"}
    assert first_call(**on_lambda) == (0, THRESHOLD)
    for own in (THRESHOLD + 1, 0):
        assert first_call(f"gc.set_threshold({own})", **on_lambda) == (0, own)


def test_elsewhere_nothing_is_changed():
    collections, threshold = first_call("print(gc.get_threshold())")
    assert collections > 0
    assert threshold < THRESHOLD


PACKAGE = Path(mcp_roundtrip.__file__).parent
MODULES = [
    *("arguments.pydantic_types", "arguments.own_input_schema", "arguments.mcp_header"),
    *("content.structured_output", "content.blocks", "engine.step_values"),
]
HEAVY = [
    "asyncio",
    "concurrent.futures",
    "email",
    "http",
    "importlib.metadata",  # pydantic looks for plugins when it builds its first validator
    "jsonschema_rs",
    "pydantic.root_model",
    "referencing",
    "ssl",
]

# The package's __init__ imports engine and server. A bare parent package avoids that.
PROGRAM = """
import sys, types
parent = types.ModuleType("mcp_roundtrip")
parent.__path__ = [{package!r}]
sys.modules["mcp_roundtrip"] = parent
import mcp_roundtrip.{module}
print([name for name in {heavy!r} if name in sys.modules])
"""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_at_most_pydantic_and_builds_no_validator(module):
    program = PROGRAM.format(package=str(PACKAGE), module=module, heavy=HEAVY)
    done = run_program(program)
    assert done.stdout.strip() == "[]"
