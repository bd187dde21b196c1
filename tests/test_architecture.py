"""Dependencies go one way, and a plain call imports little."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcp_roundtrip

PACKAGE = Path(mcp_roundtrip.__file__).parent

MAY_IMPORT = {
    "errors": set[str](),
    "canonical": set[str](),
    "principal": {"canonical"},
    "http": set[str](),
    "protocol": {"errors", "canonical"},
    "schema": {"errors", "canonical"},
    "engine": {"errors", "canonical", "principal", "protocol", "schema"},
    "state": {"errors", "canonical"},
    "tasks": {"errors", "canonical", "protocol", "engine"},
    "auth": {"errors", "canonical", "principal"},
    "settings": {"errors", "canonical", "http", "auth"},
    "redaction": set[str](),
    "telemetry": {"errors", "redaction"},
    "adapters": {"errors", "canonical", "http", "protocol"},
    "aws": {"errors", "canonical", "state", "tasks"},
    "s3": {"errors", "schema", "aws"},
    "server": {
        *("errors", "canonical", "principal", "http", "auth"),
        *("protocol", "schema", "engine", "state", "tasks"),
    },
    "readiness": set[str](),
    "wiring": {"errors", "auth", "settings", "telemetry", "server", "state", "tasks", "aws", "readiness"},
}
"""Part -> the parts it may import. The packages in development/ may import anything."""

ENTRY_POINTS = {"server/app.py", "server/handler.py", "server/front_door.py"}
"""Where the server meets the world: these also reach `wiring` and `adapters`."""


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            if node.module == "mcp_roundtrip":
                yield from (f"mcp_roundtrip.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.ImportFrom):
            pytest.fail("relative imports hide the direction")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def part(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_module_imports_only_what_its_part_may(module: Path) -> None:
    own = part(module)
    if own == "__init__":
        return
    allowed = MAY_IMPORT[own] | {own}
    if module.as_posix() in ENTRY_POINTS:
        allowed |= {"wiring", "adapters"}
    for name in imports(ast.parse((PACKAGE / module).read_text())):
        if name.startswith("mcp_roundtrip."):
            assert name.split(".")[1] in allowed, f"{module} imports {name}"
        if name.split(".")[0] in ("boto3", "botocore"):
            assert own == "aws", f"{module} imports {name}"
        if own not in ("wiring", "aws"):
            assert name != "os", f"{module} reads the environment"


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_module_holds_one_idea(module: Path) -> None:
    assert len((PACKAGE / module).read_text().splitlines()) <= 330, module


SLOW = {"asyncio", "boto3", "botocore.session", "jwt", "cryptography", "concurrent.futures", "ssl",
        "email.message", "http.client", "urllib3", "jsonschema"}  # fmt: skip

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
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


# Up to Python 3.12 importlib.metadata, which pydantic looks for plugins with, brings the e-mail parser.
UNAVOIDABLE = {"email.message"} if sys.version_info < (3, 13) else set[str]()


@pytest.fixture(scope="module")
def plain_call_modules() -> frozenset[str]:
    """All that is loaded once a server with one tool has answered its first call."""
    done = subprocess.run([sys.executable, "-c", PLAIN_CALL], capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stderr))


def test_a_plain_call_imports_nothing_slow(plain_call_modules: frozenset[str]) -> None:
    """asyncio is 40 ms, boto3 130, PyJWT and cryptography 75: a cold start pays for what it uses."""
    assert plain_call_modules & SLOW <= UNAVOIDABLE


PLAIN_CALL_LOADS = """
adapters adapters.detect adapters.direct adapters.event
auth canonical
engine engine.asking engine.async_context engine.budget engine.context engine.context_base
engine.context_call engine.effects engine.journal engine.namespaced engine.outcome engine.questions
engine.replay engine.reports engine.run
errors http principal
protocol protocol.capabilities protocol.headers protocol.jsonrpc protocol.meta protocol.methods
protocol.results
schema schema.adapters schema.bounded schema.callables schema.choices schema.content schema.docstring
schema.exact schema.forms schema.mirroring schema.output schema.signature schema.strictness schema.values
server server.app server.calls server.declarations server.dispatch server.exchange server.forwarded
server.handler server.inputs server.ports server.registry server.tools
settings state state.claims telemetry wiring
"""
"""Each costs a cold start up to some milliseconds: what a plain call does not use is imported elsewhere."""


def test_a_plain_call_loads_exactly_these_modules(plain_call_modules: frozenset[str]) -> None:
    loaded = {name for name in plain_call_modules if name.split(".")[0] == "mcp_roundtrip"}
    expected = {f"mcp_roundtrip.{name}" for name in PLAIN_CALL_LOADS.split()}
    assert tuple(sorted(loaded)) == tuple(sorted({"mcp_roundtrip", *expected}))


PUBLIC = """
AsyncContext Audio Completion Context DefinitionError Drift DuplicateKey Elicit ElicitUrl ElicitationCancelled
ElicitationDeclined EmbeddedResource FrontDoor Image InvalidKey ListRoots McpHeader McpRoundtripError
MissingClientCapability NamespacedRequest NotAwaited Principal PromptMessage ProtocolError ResourceContents
ResourceLink ResourceNotFound Retry Root Sample Sampled Server StepFailed StepInterrupted Suspend Text
ToolError TraceContext UsageError one_of
"""


def test_the_public_names_are_these() -> None:
    assert set(mcp_roundtrip.__all__) == set(PUBLIC.split())


@pytest.mark.parametrize("name", mcp_roundtrip.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(mcp_roundtrip, name).__doc__
