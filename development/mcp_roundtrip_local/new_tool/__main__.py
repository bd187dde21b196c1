"""Writes a new tool: a function that asks one question, its test, its events, its entries in the templates.

``python -m mcp_roundtrip_local.new_tool find_orders`` does it in the project at hand, ``make new-tool
NAME=find_orders`` is short for it. Either all is written, the front door's catalog included, or nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_local.new_tool.plan import NewToolError, planned, write


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 2 for what the caller can mend."""
    parser = argparse.ArgumentParser(
        prog="python -m mcp_roundtrip_local.new_tool",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="what the tool and its folder are called, such as find_orders")
    parser.add_argument("--project", type=Path, default=Path(), help="where template.yaml is")
    given = parser.parse_args(arguments)
    try:
        written = planned(given.project, given.name)
        write(written)
    except (NewToolError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(str(path) for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
