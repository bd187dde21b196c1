"""Add a tool that asks one question to a function: a module, its registration, its test and its events.

With --tasks the tool becomes a task, and the function gets a worker function if it has none.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.growth.change import (
    Files,
    catalog_files,
    edit_first,
    parser,
    read_template,
    refuse_existing,
    render_test_and_events,
    run,
)
from mcp_roundtrip_tools.growth.entries import add_worker, name_of
from mcp_roundtrip_tools.growth.functions import TEMPLATE, select_function, tool_functions
from mcp_roundtrip_tools.growth.names import check_length, check_module_name, check_name
from mcp_roundtrip_tools.growth.registration import register, try_registration
from mcp_roundtrip_tools.growth.tool_files import render_module


def main(
    arguments: Sequence[str] | None = None, *, prog: str = "python -m mcp_roundtrip_tools.growth.new_tool"
) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    options = parser(prog, __doc__)
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
        check_length(project, f"{name_of(document, owner.logical_id)}_worker")
        files[project / TEMPLATE] = template.text
    try_registration(app, name, files)
    if (project / FUNCTIONS / FRONT_DOOR).is_dir():
        files |= catalog_files(project, files)
    return files


if __name__ == "__main__":
    sys.exit(main())
