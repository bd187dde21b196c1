"""Write a new tool that asks one question, and its test.

Behind a front door, the tool is a function of its own, with events and an entry in template.yaml. With
--tasks, it becomes a task, and the entry also has the worker function that runs it, and its queue. In an
application without a front door, the tool is a module of the application's function.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_tools.new_tool.plan import NewToolError, plan_files, write


def main(
    arguments: Sequence[str] | None = None, *, prog: str = "python -m mcp_roundtrip_tools.new_tool"
) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="the name of the tool, such as find_orders")
    parser.add_argument("--tasks", action="store_true", help="a tool with tasks, and its worker function")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    given = parser.parse_args(arguments)
    try:
        written = plan_files(given.project, given.name, tasks=given.tasks)
        write(written)
    except (NewToolError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(str(path) for path in written))
    print(f"\nNow edit {next(iter(written))}. `make run` serves the tool.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
