"""Add a function with a role of its own, and the front door with the second one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip_testing.environments import load_server
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.growth.change import (
    Files,
    catalog_files,
    edit_first,
    parser,
    read_template,
    refuse_existing,
    render,
    render_app,
    render_test_and_events,
    run,
)
from mcp_roundtrip_tools.growth.entries import (
    add_front_door,
    add_function,
    add_worker,
    logical_id_prefix,
    name_of,
)
from mcp_roundtrip_tools.growth.functions import TEMPLATE, ToolFunction, tool_functions
from mcp_roundtrip_tools.growth.names import GrowthError, check_function_name, check_name


def front_door_files(project: Path, functions: Mapping[str, ToolFunction]) -> dict[Path, str]:
    """Return the module of the front door and the test of its catalog.

    The front door is what clients know as the server, so it has the options of the application's server that
    clients see.
    """
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    given = parser("new-function", __doc__).parse_args(arguments)
    return run(lambda: plan_function(given.project, given.name, tasks=given.tasks), edit_first)


def plan_function(project: Path, name: str, *, tasks: bool = False) -> Files:
    """Return the files that a function with a tool of this name adds or changes.

    Raises GrowthError and TemplateError.
    """
    check_name(name, "new-function")
    document, template = read_template(project)
    check_function_name(project, document, name)
    functions = tool_functions(project, document)
    app = project / FUNCTIONS / name / "app.py"
    new = {app: render_app(name, tasks=tasks), **render_test_and_events(project, name, app, tasks=tasks)}
    with_makefile = (project / FUNCTIONS / "Makefile").is_file()
    add_function(template, name, with_makefile=with_makefile)
    if tasks:
        add_worker(template, ToolFunction(f"{logical_id_prefix(name)}Function", name, app))
    is_second = functions and not (project / FUNCTIONS / FRONT_DOOR).exists()
    if is_second:
        check_owners(project, document, functions)
    catalog = catalog_files(project, new)
    if is_second:
        new |= front_door_files(project, functions)
        first = next(iter(functions.values())).logical_id
        add_front_door(template, first, with_makefile=with_makefile)
    refuse_existing(new)
    return {**new, project / TEMPLATE: template.text, **catalog}
