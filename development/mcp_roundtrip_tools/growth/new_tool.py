"""Add a tool to a function: its module and its registration."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_testing.environments import load_server
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.growth.change import (
    Files,
    catalog_files,
    changed_copy,
    edit_first,
    parser,
    read_template,
    refuse_existing,
    render_module,
    render_test_and_events,
    run,
)
from mcp_roundtrip_tools.growth.entries import add_worker
from mcp_roundtrip_tools.growth.functions import TEMPLATE, select_function, tool_functions
from mcp_roundtrip_tools.growth.names import GrowthError, check_module_name, check_name


def register(app: Path, name: str, *, tasks: bool) -> str:
    """Return the text of `app` with the import and the registration of a tool. Raises GrowthError.

    With `tasks`, the tool may become a task, and the module has a handler for the function's worker.
    """
    text = app.read_text("utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise GrowthError(f"{app}: {error}") from None
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    handlers = [(node, server) for node in tree.body if (server := _server_of(node, "lambda_handler"))]
    if not imports or not handlers:
        raise GrowthError(
            f"{app} has no line `handler = server.lambda_handler`, before which it is registered"
        )
    lines, end_of_imports = text.splitlines(), imports[-1].end_lineno
    [(handler, server), *_] = handlers
    has_worker = any(_server_of(node, "worker_handler") for node in tree.body)
    between = "\n".join(lines[end_of_imports : handler.lineno - 1]).rstrip()
    last = imports[-1]
    follows_import = isinstance(last, ast.ImportFrom) and app.with_name(f"{last.module}.py").exists()
    follows_registration = between.rpartition("\n")[2].startswith(f"{server}.tool(")
    tool = f'{server}.tool(task="optional")({name})' if tasks else f"{server}.tool({name})"
    parts = [
        *lines[:end_of_imports],
        *([] if follows_import else [""]),
        f"from {name} import {name}",
        between,
        *([] if follows_registration else ["", ""]),
        tool,
        "",
        *lines[handler.lineno - 1 : handler.end_lineno],
        *([f"worker = {server}.worker_handler"] if tasks and not has_worker else []),
        *lines[handler.end_lineno :],
    ]
    return "\n".join(parts) + "\n"


def try_registration(app: Path, name: str, files: Mapping[Path, str]) -> None:
    """Load a changed module in a copy of its folder. Raises GrowthError."""
    with changed_copy(app.parent, files) as copy:
        try:
            tools = load_server(copy / app.name).tools
        except McpRoundtripError as error:
            raise GrowthError(f"{app}: {error}") from None
        except Exception as error:  # importing a module may raise anything
            raise GrowthError(f"{app} cannot be imported: {type(error).__name__}: {error}") from error
    if name not in tools:
        raise GrowthError(f"{app} does not register the tool")


def _server_of(node: ast.stmt, handler: str) -> str | None:
    """Return the name of the server in `handler = server.lambda_handler`."""
    match node:
        case ast.Assign(value=ast.Attribute(value=ast.Name(server), attr=attribute)) if attribute == handler:
            return server
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    options = parser("new-tool", __doc__)
    options.add_argument("--function", help="the folder of the function, if there are several")
    given = options.parse_args(arguments)
    function = given.function or None
    return run(lambda: plan_tool(given.project, given.name, function, tasks=given.tasks), edit_first)


def plan_tool(project: Path, name: str, function: str | None = None, *, tasks: bool = False) -> Files:
    """Return the files that a tool of this name adds or changes. Raises GrowthError and TemplateError."""
    check_name(name, "new-tool")
    document, template = read_template(project)
    owner = select_function(tool_functions(project, document), function)
    app = owner.module
    new = {
        app.with_name(f"{name}.py"): render_module(name, tasks=tasks),
        **render_test_and_events(project, name, app, tasks=tasks),
    }
    refuse_existing(new)
    check_module_name(name)
    files = {**new, app: register(app, name, tasks=tasks)}
    if tasks and owner.worker is None:
        add_worker(template, owner)
        files[project / TEMPLATE] = template.text
    try_registration(app, name, files)
    if (project / FUNCTIONS / FRONT_DOOR).is_dir():
        files |= catalog_files(project, files)
    return files
