"""Direction of dependencies, and the budget of imports of a plain call."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import mcp_roundtrip
import mcp_roundtrip_local
import mcp_roundtrip_testing

PACKAGE = Path(mcp_roundtrip.__file__).parent

MAY_IMPORT = {
    "errors": set[str](),
    "internal_errors": {"errors"},
    "canonical": set[str](),
    "principal": {"canonical"},
    "http": set[str](),
    "deadline": set[str](),
    "fallbacks": set[str](),
    "journal": {"errors"},
    "protocol": {"errors", "internal_errors", "canonical"},
    "schema": {"errors", "internal_errors", "canonical"},
    "engine": {
        *("errors", "internal_errors", "canonical", "fallbacks", "journal", "principal", "deadline"),
        *("protocol", "schema"),
    },
    "state": {"errors", "internal_errors", "canonical"},
    "question_page": {"canonical", "schema"},
    "tasks": {"errors", "internal_errors", "canonical", "journal", "protocol", "engine"},
    "auth": {"errors", "internal_errors", "canonical", "principal"},
    "settings": {"errors", "internal_errors", "http", "auth"},
    "environment": {"errors", "internal_errors", "canonical", "http", "auth", "settings"},
    "redaction": set[str](),
    "log_lines": set[str](),
    "telemetry": {"errors", "internal_errors", "log_lines", "redaction"},
    "adapters": {"errors", "internal_errors", "canonical", "http", "protocol"},
    "aws": {"errors", "internal_errors", "canonical", "state", "tasks"},
    "s3": {"errors", "internal_errors", "schema", "aws"},
    "ports": {"http", "auth", "state", "tasks"},
    "server": {
        *("errors", "internal_errors", "canonical", "principal", "http", "deadline", "ports", "auth"),
        *("fallbacks", "journal", "protocol", "schema", "engine", "state", "tasks", "question_page"),
    },
    "prewarm": set[str](),
    "wiring": {
        "errors",
        "internal_errors",
        "ports",
        "deadline",
        "auth",
        "environment",
        "settings",
        "log_lines",
        "telemetry",
        "state",
        "tasks",
        "aws",
        "prewarm",
    },
    "entry": {
        *("errors", "internal_errors", "canonical", "principal", "http", "deadline", "ports", "auth"),
        *("fallbacks", "protocol", "state", "tasks", "adapters", "server", "wiring"),
    },
}
"""Part -> the parts it may import. The packages in development/ may import anything."""


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


def forbidden(module: Path) -> Iterator[str]:
    """Yield the forbidden imports of a module."""
    own = part(module)
    allowed = MAY_IMPORT[own] | {own}
    for name in imports(ast.parse((PACKAGE / module).read_text())):
        first, _, rest = name.partition(".")
        if first == "mcp_roundtrip" and rest.split(".")[0] not in {*allowed, ""}:
            yield f"{module} imports {name}"
        if first in {"boto3", "botocore"} and own != "aws":
            yield f"{module} imports {name}: only aws/ calls AWS"
        if name == "os" and own not in {"wiring", "aws"}:
            yield f"{module} imports os: only wiring and aws/ read the environment"


def test_a_module_imports_only_the_parts_allowed_for_its_part() -> None:
    found = [each for module in modules() if part(module) != "__init__" for each in forbidden(module)]
    assert found == []


def imported_modules(tree: ast.AST, known: frozenset[str]) -> frozenset[str]:
    """Return the modules of this package that a module imports anywhere, also in functions and for types."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    # Importing a module from its package does not import what the package itself imports.
    packages = {name.rpartition(".")[0] for name in names & known}
    return (names & known) - packages


def import_graph() -> dict[str, frozenset[str]]:
    """Return the imports of each module of the layer and of development/, by dotted name."""
    folders = [
        PACKAGE,
        Path(mcp_roundtrip_local.__file__).parent,
        Path(mcp_roundtrip_testing.__file__).parent,
    ]
    paths = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in folders
        for path in folder.rglob("*.py")
    }
    known = frozenset(paths)
    return {name: imported_modules(ast.parse(path.read_text()), known) for name, path in paths.items()}


def find_cycle(graph: dict[str, frozenset[str]]) -> list[str]:
    """Return the modules of one cycle in the order of their imports; none if there is no cycle."""
    done = set[str]()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for imported in sorted(graph[name]):
            if found := visit(imported, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name, []))), [])


def test_the_import_graph_has_no_cycle() -> None:
    """Imports in functions and for type checkers count: they hide a cycle and do not remove it."""
    assert " -> ".join(find_cycle(import_graph())) == ""


def test_a_cycle_is_detected_and_named() -> None:
    graph = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"}), "d": frozenset({"a"})}
    assert find_cycle(graph) == ["b", "c", "b"]
    assert find_cycle({**graph, "c": frozenset()}) == []


SHARED_CLASS_NAMES = {
    "Round": "the testing package's is what an author sees of the server's: its messages, not how it ran",
}
"""Name of a public class that two modules define -> the reason."""


def test_public_class_names_are_unique() -> None:
    folders = (
        PACKAGE,
        Path(mcp_roundtrip_local.__file__).parent,
        Path(mcp_roundtrip_testing.__file__).parent,
    )
    defined = Counter(
        node.name
        for folder in folders
        for path in folder.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in defined.items() if count > 1} == SHARED_CLASS_NAMES.keys()


LONGEST_MODULE = 330
"""Lines. In reviews every longer module had two responsibilities."""


def test_no_module_exceeds_the_maximum_length() -> None:
    lengths = {module.as_posix(): len((PACKAGE / module).read_text().splitlines()) for module in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE} == {}


NEVER_LOADED = {
    "asyncio": "40 ms, for async tools",
    "boto3": "130 ms, for calls to AWS",
    "botocore.session": "most of boto3",
    "cryptography": "12 ms, for minting or verifying a token",
    "jsonschema": "for a raw input_schema",
    "concurrent.futures": "for steps in threads",
    "ssl": "for outgoing HTTPS",
    "http.client": "for outgoing HTTPS",
    "urllib3": "for outgoing HTTPS",
    # Up to Python 3.12 importlib.metadata, with which pydantic finds plugins, imports the e-mail parser.
    **({"email.message": "for outgoing HTTPS"} if sys.version_info >= (3, 13) else {}),
    "mcp_roundtrip.aws": "for calls to AWS",
    "mcp_roundtrip.s3": "for large results",
    "mcp_roundtrip.tasks": "for tasks",
    "mcp_roundtrip.auth.bearer": "for AuthMode bearer",
    "mcp_roundtrip.question_page": "for browsers",
    "mcp_roundtrip.server.question_page": "for browsers",
    "mcp_roundtrip.state.codec": "for the first round trip",
    "mcp_roundtrip.engine.channels": "for calls that ask",
    "mcp_roundtrip.engine.url_polling": "for async tools",
    "mcp_roundtrip.protocol.session_id": "for clients of the earlier versions",
    "mcp_roundtrip.schema.raw_arguments": "for a raw input_schema",
    "mcp_roundtrip.server.channels": "for calls that ask",
    "mcp_roundtrip.server.client_behavior": "for calls that run out of time",
    "mcp_roundtrip.server.answer_tool": "for clients that show views",
    "mcp_roundtrip.server.app_questions": "for clients that show views",
    "mcp_roundtrip.server.views": "for clients that show views",
    "mcp_roundtrip.entry.front_door": "for the front door",
}
"""Modules that a plain call must never load, with their cost or purpose."""

PACKAGE_BUDGET = 71
"""Modules of this package that a plain call may load; one adds up to some milliseconds. (70 today.)"""

LIBRARY_BUDGET = 69
"""Modules of other distributions, most of them pydantic's and msgspec's. (66 today.)"""

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


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """Return the loaded modules after the first call of a server with one tool."""
    done = subprocess.run([sys.executable, "-c", PLAIN_CALL], capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stderr))


def test_a_plain_call_does_not_load_unneeded_modules(loaded: frozenset[str]) -> None:
    assert {name: reason for name, reason in NEVER_LOADED.items() if name in loaded} == {}
    # The test could never find a stale name.
    assert [name for name in NEVER_LOADED if find_spec(name) is None] == []


def test_a_plain_call_stays_within_its_budget_of_modules(loaded: frozenset[str]) -> None:
    ours = {name for name in loaded if name.split(".")[0] == "mcp_roundtrip"}
    libraries = {name for name in loaded - ours if name.split(".")[0] not in sys.stdlib_module_names}
    assert len(ours) <= PACKAGE_BUDGET, sorted(ours)
    assert len(libraries) <= LIBRARY_BUDGET, sorted(libraries)


def test_a_front_door_imports_neither_the_engine_nor_pydantic() -> None:
    """Both take most of the time of a cold start, and a front door runs no tool."""
    code = "import sys; from mcp_roundtrip import FrontDoor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = ("pydantic", "mcp_roundtrip.engine", "mcp_roundtrip.schema")
    assert [name for name in done.stdout.split() if name.startswith(heavy)] == []


PUBLIC = """
AsyncContext Audio Completion Context DefinitionError Drift DuplicateKey Elicit ElicitUrl ElicitationCancelled
ElicitationDeclined EmbeddedResource FrontDoor Image InvalidKey ListRoots McpHeader McpRoundtripError
MissingClientCapability NamespacedRequest NotAwaited Principal PromptMessage ProtocolError ResourceContents
ResourceLink ResourceNotFound Retry Root Sample Sampled Server StepFailed StepInterrupted Suspend Text
ToolError TraceContext UsageError one_of
"""


def test_the_public_names_are_pinned() -> None:
    assert set(mcp_roundtrip.__all__) == set(PUBLIC.split())


def test_every_public_name_exists_and_is_documented() -> None:
    assert [name for name in mcp_roundtrip.__all__ if not getattr(mcp_roundtrip, name).__doc__] == []
