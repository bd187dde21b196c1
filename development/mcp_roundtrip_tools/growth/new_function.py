"""Add a function with a role of its own, and a tool that asks one question, with its test and its events.

With --tasks the tool becomes a task, which a worker function runs. The second function of an application also
adds the front door, which answers at the endpoint from then on. The address of the endpoint stays.
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
from mcp_roundtrip_tools.growth.entries import add_front_door, add_function, add_worker, logical_id_prefix
from mcp_roundtrip_tools.growth.front_door import check_owners, front_door_files
from mcp_roundtrip_tools.growth.functions import TEMPLATE, ToolFunction, tool_functions
from mcp_roundtrip_tools.growth.names import check_function_name, check_length, check_name
from mcp_roundtrip_tools.growth.tool_files import render_app


def main(
    arguments: Sequence[str] | None = None, *, prog: str = "python -m mcp_roundtrip_tools.growth.new_function"
) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    given = parser(prog, __doc__).parse_args(arguments)
    return run(lambda: plan_function(given.project, given.name, tasks=given.tasks), edit_first)


def plan_function(project: Path, name: str, *, tasks: bool = False) -> Files:
    """Return the files that a function with a tool of this name adds or changes.

    Raises GrowthError and TemplateError.
    """
    check_name(name, "new-function")
    document, template = read_template(project)
    check_function_name(project, document, name)
    check_length(project, f"{name}_worker" if tasks else name)
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


if __name__ == "__main__":
    sys.exit(main())
