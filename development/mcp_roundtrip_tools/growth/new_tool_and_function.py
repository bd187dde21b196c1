"""Add a tool to a function, or a function with a role of its own, and the front door with the second one."""

import ast
import json
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_testing.execution_environments import load_server
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.catalog.edge_routes import logical_id_prefix
from mcp_roundtrip_tools.growth.entries import (
    TEMPLATE,
    ToolFunction,
    add_front_door,
    add_function,
    add_worker,
    functions_of,
    name_of,
    select_function,
    tool_functions,
)
from mcp_roundtrip_tools.growth.written_files import (
    Files,
    GrowthError,
    changed_catalog,
    changed_copy,
    check_function_name,
    check_module_name,
    check_name,
    edit_first,
    parser,
    read_template,
    refuse_existing,
    render,
    render_app,
    render_module,
    render_test_and_events,
    run,
)


def register(app: Path, name: str, *, tasks: bool) -> str:
    """Return the text of `app` with a tool, and with `tasks` a worker, registered. Raises GrowthError."""
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
        *([between] if between else []),
        *([] if follows_registration else ["", ""]),
        tool,
        "",
        *lines[handler.lineno - 1 : handler.end_lineno],
        *([f"worker = {server}.worker_handler"] if tasks and not has_worker else []),
        *lines[handler.end_lineno :],
    ]
    return "\n".join(parts) + "\n"


def try_registration(app: Path, files: Mapping[Path, str]) -> None:
    """Load a changed module in a copy of its folder. Raises GrowthError."""
    with changed_copy(app.parent, files) as copy:
        try:
            load_server(copy / app.name)
        except McpRoundtripError as error:
            raise GrowthError(f"{app}: {error}") from None
        except Exception as error:  # importing a module may raise anything
            raise GrowthError(f"{app} cannot be imported: {type(error).__name__}: {error}") from error


def _server_of(node: ast.stmt, handler: str) -> str | None:
    """Return the name of the server in `handler = server.lambda_handler`."""
    match node:
        case ast.Assign(value=ast.Attribute(value=ast.Name(server), attr=attribute)) if attribute == handler:
            return server
    return None


def new_tool(arguments: Sequence[str]) -> int:
    """Run the command. Raises GrowthError and OSError."""
    options = parser("new-tool", "Add a tool to a function: its module and its registration.")
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
    if app.parent != project / functions_of(document)[owner.logical_id]["CodeUri"]:
        raise GrowthError(
            f"{owner.logical_id} imports {app.stem} from a package, so it would not find the tool's module: "
            f"set CodeUri to {app.parent.relative_to(project)}/ and Handler to {app.stem}.handler"
        )
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
    try_registration(app, files)
    if (project / FUNCTIONS / FRONT_DOOR).is_dir():
        files |= changed_catalog(project, files)
    return files


def front_door_files(project: Path, functions: Mapping[str, ToolFunction]) -> dict[Path, str]:
    """Return the front door, with what clients see of the application's server, and the catalog's test."""
    [first] = functions.values()
    return {
        project / FUNCTIONS / FRONT_DOOR / "app.py": _app(load_server(first.module)),
        project / "tests/test_front_door.py": render("test_front_door.txt"),
    }


def _app(server: Server) -> str:
    arguments = [_literal(server.info["name"]), 'Path(__file__).with_name("catalog.json")']
    options = [f"{name}={_literal(value)}" for name, value in _options(server).items()]
    lines = "".join(f"\n    {each}," for each in (*arguments, *options)) + "\n"
    return render("front_door.txt", arguments=lines if options else ", ".join(arguments))


def _literal(value: Any) -> str:
    """Return the Python expression of a value, with the quotes that formatters prefer."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, list, tuple)) else repr(value)


def _options(server: Server) -> dict[str, Any]:
    """Return the keywords of the server that the front door needs, without those that have their default."""
    options, parameters = server.options, signature(FrontDoor).parameters
    given = {
        "version": server.info["version"],
        "title": server.info.get("title"),
        "instructions": options.instructions,
        "icons": options.branding.get("icons"),
        "website_url": options.branding.get("websiteUrl"),
        "description": options.description,
        "legacy_clients": options.legacy_clients,
        "legacy_tasks": options.legacy_tasks,
        "page_size": options.page_size,
        "list_ttl_ms": options.list_ttl_ms,
        "initial_scopes": options.initial_scopes,
    }
    return {name: value for name, value in given.items() if value != parameters[name].default}


def check_owners(project: Path, document: Mapping[str, Any], functions: Mapping[str, ToolFunction]) -> None:
    """Refuse functions that a front door cannot find by the names of their folders. Raises GrowthError."""
    for folder, function in functions.items():
        expected = project / FUNCTIONS / folder / "app.py"
        if function.module != expected or name_of(document, function.logical_id) != folder:
            raise GrowthError(
                f"the front door needs {function.logical_id} in {expected}, with the name of its folder: "
                "`FunctionName: !Sub ${AWS::StackName}_" + folder + "`"
            )


def new_function(arguments: Sequence[str]) -> int:
    """Run the command. Raises GrowthError and OSError."""
    description = "Add a function with a role of its own, and the front door with the second one."
    given = parser("new-function", description).parse_args(arguments)
    return run(lambda: plan_function(given.project, given.name, tasks=given.tasks), edit_first)


def plan_function(project: Path, name: str, *, tasks: bool = False) -> Files:
    """Return the files that a function with this tool adds or changes. Raises GrowthError, TemplateError."""
    check_name(name, "new-function")
    document, template = read_template(project)
    check_function_name(project, document, name)
    functions = tool_functions(project, document)
    app = project / FUNCTIONS / name / "app.py"
    new = {app: render_app(name, tasks=tasks), **render_test_and_events(project, name, app, tasks=tasks)}
    with_makefile = (project / FUNCTIONS / "Makefile").is_file()
    add_function(template, name, with_makefile=with_makefile)
    if tasks:
        add_worker(template, ToolFunction(f"{logical_id_prefix(name)}Function", app))
    is_second = functions and not (project / FUNCTIONS / FRONT_DOOR).exists()
    if is_second:
        check_owners(project, document, functions)
    catalog = changed_catalog(project, new)
    if is_second:
        new |= front_door_files(project, functions)
        first = next(iter(functions.values())).logical_id
        add_front_door(template, first, with_makefile=with_makefile)
    refuse_existing(new)
    return {**new, project / TEMPLATE: template.text, **catalog}
