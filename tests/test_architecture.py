"""Direction of dependencies, names that exist once, and the length of modules."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mcp_roundtrip
import mcp_roundtrip_testing

PACKAGE = Path(mcp_roundtrip.__file__).parent
DEVELOPMENT = Path(mcp_roundtrip_testing.__file__).parents[1]
TESTING, TOOLS = "mcp_roundtrip_testing", "mcp_roundtrip_tools"

MAY_IMPORT = {
    "errors": set[str](),
    "internal_errors": {"errors"},
    "protocol": {"errors"},
    "schema": {"errors", "internal_errors", "protocol.strict_json"},
    "arguments": {"errors", "internal_errors", "protocol.strict_json", "protocol.constants", "schema"},
    "content": {
        *("errors", "protocol.strict_json", "protocol.constants", "protocol.resource_uris"),
        *("schema", "arguments"),
    },
    "engine": {
        *("errors", "internal_errors", "auth.callers"),
        *("protocol", "schema", "arguments"),
    },
    "state": {"errors", "internal_errors", "protocol.strict_json"},
    "question_ui": {"protocol.strict_json", "protocol.constants"},
    "tasks": {"errors", "internal_errors", "auth.callers", "protocol", "engine"},
    "auth": {"errors", "internal_errors", "protocol.strict_json"},
    "adapters": {"errors", "protocol"},
    "observing": {"errors"},
    "observing.opentelemetry_tracer": {"aws.client_interface"},
    "observing.audit_records": {"engine.journal", "auth.callers"},
    "aws": {"errors", "internal_errors", "protocol.strict_json", "state", "tasks"},
    "s3": {"errors", "content", "aws"},
    "server": {
        *("errors", "internal_errors", "deployment.ports", "auth"),
        *("protocol", "schema", "arguments", "content"),
        *("engine", "state", "tasks", "question_ui"),
        *("observing.audit_records", "observing.opentelemetry_tracer"),
    },
    "deployment": {
        *("internal_errors", "protocol", "auth", "engine.deadline", "state", "tasks", "aws", "observing"),
    },
    "entry": {
        *("errors", "internal_errors", "auth.callers", "auth.scope_hierarchy", "engine.deadline"),
        *("protocol", "state", "tasks", "adapters", "server", "deployment"),
    },
}
"""Part -> the parts, or single modules, that it may import.

A module with an entry of its own follows that one. The packages in development/ may import anything.
"""


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            if node.module.partition(".")[0] == "mcp_roundtrip":  # `from package import module`, too
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.ImportFrom):
            pytest.fail("relative imports hide the direction")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def part(module: Path) -> str:
    """Return the key of the module's arrows: its own name, or that of its package."""
    name = ".".join(module.with_suffix("").parts)
    return name if name in MAY_IMPORT else module.parts[0].removesuffix(".py")


def prefixes(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[: index + 1]) for index in range(len(parts))}


def forbidden(module: Path) -> Iterator[str]:
    own = part(module)
    allowed = MAY_IMPORT[own] | {module.parts[0].removesuffix(".py")}
    for name in imports(parsed(PACKAGE / module)):
        first, _, rest = name.partition(".")
        if first == "mcp_roundtrip" and rest and allowed.isdisjoint(prefixes(rest)):
            yield f"{module} imports {name}"
        if first in {"boto3", "botocore"} and own != "aws":
            yield f"{module} imports {name}: only aws/ calls AWS"
        if name == "os" and own not in {"deployment", "aws"}:
            yield f"{module} imports os: only deployment/ and aws/ read the environment"


def test_a_module_imports_only_the_parts_allowed_for_its_part():
    found = [each for module in modules() if part(module) != "__init__" for each in forbidden(module)]
    assert found == []


ENGINE_FOR_ALL = ("mcp_roundtrip.engine.journal", "mcp_roundtrip.engine.deadline")
"""The modules of the engine that import nothing else of it."""

RUN_TOOLS = {"tasks/worker.py"}
"""The module of tasks/ that runs calls. The others also serve front doors, which know the journal only."""


def test_only_workers_of_tasks_import_the_engine():
    tasks = [module for module in modules() if part(module) == "tasks"]
    found = {
        module.as_posix()
        for module in tasks
        if any(runs_calls(name) for name in imports(parsed(PACKAGE / module)))
    }
    assert found == RUN_TOOLS


def runs_calls(name: str) -> bool:
    return name.startswith("mcp_roundtrip.engine.") and not name.startswith(ENGINE_FOR_ALL)


def imported_modules(tree: ast.AST, known: frozenset[str]) -> frozenset[str]:
    """Return the modules of this package that a module imports anywhere, also in functions and for types."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names & known)


def folders_of(module: str) -> set[str]:
    """Return the folders of a module whose `__init__` Python runs before it.

    That of the package is no part of the graph: it imports its names when they are used.
    """
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(2, len(parts))}


@cache
def import_graph() -> dict[str, frozenset[str]]:
    folders = [PACKAGE, *DEVELOPMENT.glob("mcp_roundtrip_*/")]
    paths = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in folders
        for path in folder.rglob("*.py")
        if "{{" not in str(path)  # a template of an application
    }
    known = frozenset(paths)
    graph = {}
    for name, path in paths.items():
        imported = {each for each in imported_modules(parsed(path), known) if "." in each}
        folders = set[str]().union(*map(folders_of, imported)) - folders_of(name)
        graph[name] = frozenset(imported | folders) - {name}
    return graph


def find_cycle(graph: dict[str, frozenset[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_the_import_graph_has_no_cycle():
    """Imports in functions and for type checkers count: they hide a cycle and do not remove it."""
    assert " -> ".join(find_cycle(import_graph())) == ""


FLOORS_OF_SERVER = 8
"""The longest chain of imports in `server/`: each module on it needs those below it to be understood."""


def test_a_request_goes_through_few_floors_of_the_server():
    """Imports in functions and for type checkers count."""
    own = {name: each for name, each in import_graph().items() if name.startswith("mcp_roundtrip.server.")}

    @cache
    def chain(name: str) -> list[str]:
        below = [chain(each) for each in own[name] if each in own]
        return [*max(below, key=len, default=[]), name]

    longest = max(map(chain, own), key=len)
    assert len(longest) <= FLOORS_OF_SERVER, longest


def test_the_execution_of_functions_does_not_know_the_emulated_services():
    for name, imported in import_graph().items():
        if name.startswith(f"{TOOLS}.run.execution."):
            assert not [each for each in imported if each.startswith(f"{TOOLS}.run.services.")], name


OF_AUTHORS = f"{TESTING}.serving"
"""The only module of the testing package that imports the tools: authors import them from there."""

LOCAL_RUN = frozenset({"run", "console"})
CATALOG = frozenset({"catalog", "events", "growth"})
"""Folders of the tools that import each other. All others import in one direction."""


def unit(module: str) -> str:
    """Return the package of a module. Of the tools, it is the folder, or the group of folders."""
    package, _, rest = module.partition(".")
    if module == OF_AUTHORS:
        return module
    if package != TOOLS:
        return package
    name = rest.partition(".")[0]
    group = next((group for group in (LOCAL_RUN, CATALOG) if name in group), {name})
    return f"{TOOLS}: {', '.join(sorted(group))}"


def test_the_packages_import_each_other_in_one_direction():
    """Nothing of development/ is deployed, so the layer imports none of its packages."""
    graph: dict[str, frozenset[str]] = {}
    for module, imported in import_graph().items():
        own = unit(module)
        graph[own] = graph.get(own, frozenset()) | (frozenset(map(unit, imported)) - {own})
    assert graph["mcp_roundtrip"] == frozenset()
    assert graph[TESTING] == {"mcp_roundtrip", f"{TOOLS}: template"}  # `Player` reads what a deployment has
    assert " -> ".join(find_cycle(graph)) == ""


SHARED_CLASS_NAMES = {
    "Round": "the testing package's is what an author sees of the server's: its messages, not how it ran",
}
"""Name of a public class that two modules define -> the reason."""


def test_public_class_names_are_unique():
    folders = (
        PACKAGE,
        DEVELOPMENT / TESTING,
        *(DEVELOPMENT / TOOLS / name for name in (*LOCAL_RUN, *CATALOG, "template")),
    )
    defined = Counter(
        node.name
        for folder in folders
        for path in folder.rglob("*.py")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in defined.items() if count > 1} == SHARED_CLASS_NAMES.keys()


LONGEST_MODULE = 350
"""Lines. In reviews every longer module had two responsibilities."""


def test_no_module_exceeds_the_maximum_length():
    folders = (PACKAGE, DEVELOPMENT, Path(__file__).parent)
    paths = [path for folder in folders for kind in ("*.py", "*.js") for path in folder.rglob(kind)]
    lengths = {path.as_posix(): len(path.read_text("utf-8").splitlines()) for path in paths}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE} == {}


MAX_IMPORTS_IN_FUNCTIONS = 40
"""Imports that save a package in most cold starts. All others are at the top of their modules."""


def imports_in_functions(tree: ast.AST) -> set[ast.stmt]:
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    within = [each for function in functions for each in ast.walk(function)]
    return {each for each in within if isinstance(each, ast.Import | ast.ImportFrom)}


def test_few_imports_are_in_functions():
    found = {module.as_posix(): len(imports_in_functions(parsed(PACKAGE / module))) for module in modules()}
    assert sum(found.values()) <= MAX_IMPORTS_IN_FUNCTIONS, {name: n for name, n in found.items() if n}


PUBLIC = """
AsyncContext Audio Call Completion Context DefinitionError DefinitionWarning Drift DuplicateKey Elicit
ElicitUrl ElicitationCancelled ElicitationDeclined EmbeddedResource FrontDoor Image InvalidKey ListRoots
McpHeader McpRoundtripError MissingClientCapability NamespacedRequest NotAwaited Principal PromptMessage
ProtocolError ResourceContents
ResourceLink ResourceNotFound Retry Root Sample Sampled Server StepFailed StepInterrupted Suspend Text
ToolError TraceContext UsageError one_of
"""


def test_the_public_names_are_pinned():
    assert set(mcp_roundtrip.__all__) == set(PUBLIC.split())


def test_every_public_name_exists_and_is_documented():
    assert [name for name in mcp_roundtrip.__all__ if not getattr(mcp_roundtrip, name).__doc__] == []
