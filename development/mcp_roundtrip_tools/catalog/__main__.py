"""Write the front door's catalog: the tools, prompts, resources and skills that every function registers.

The owners' digests, the manifests of skills and platform/edge/ are written, too. With --check, only report
whether all files are current.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.catalog.catalog import (
    FRONT_DOOR,
    FUNCTIONS,
    CatalogError,
    digest_files,
    load_function_servers,
    load_servers,
    render_servers,
)
from mcp_roundtrip_tools.catalog.skill_folders import SkillError, stale_manifests, write_manifests


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="mcp-roundtrip catalog", description=__doc__)
    parser.add_argument(
        "--functions",
        type=Path,
        help="the folder of the functions' folders; default: functions, if it exists, or this one",
    )
    parser.add_argument("--output", type=Path, help="default: front_door/catalog.json among the functions")
    parser.add_argument("--check", action="store_true", help="exit with 1 when the catalog is stale")
    parser.add_argument(
        "--owner",
        type=_owner,
        action="append",
        metavar="NAME=MODULE",
        help="a function and the path of its module, instead of --functions",
    )
    parser.add_argument(
        "--path", action="append", default=[], help="a folder to import from, after all others"
    )
    given = parser.parse_args(arguments)
    functions = given.functions or (FUNCTIONS if FUNCTIONS.is_dir() else Path())
    output = given.output or functions / FRONT_DOOR / "catalog.json"
    try:
        sys.path.extend(given.path)
        found = load_servers(dict(given.owner)) if given.owner else load_function_servers(functions)
        text = render_servers(found)
        stale = stale_manifests(found.values())
    except (CatalogError, SkillError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    has_catalog = output.parent.is_dir()
    if not has_catalog and not any(server.skill_folders for server in found.values()):
        print(
            f"error: there is nothing to write: {output.parent}, the folder of a front door, does not exist, "
            "and no function serves skills",
            file=sys.stderr,
        )
        return 2
    files = {output: text} if has_catalog else {}
    if has_catalog and given.output is None:
        files |= digest_files(functions, text)
        files |= edge_routes.changed_files(functions.parent, json.loads(text))
    if not given.check:
        write_manifests(stale)
        for path, content in files.items():
            path.write_text(content, encoding="utf-8")
        return 0
    stale = [*(path for path, content in files.items() if not _has(path, content)), *stale]
    for path in stale:
        print(f"{path} is stale: run `make catalog`", file=sys.stderr)
    return 1 if stale else 0


def _has(path: Path, content: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == content


def _owner(text: str) -> tuple[str, Path]:
    name, _, module = text.partition("=")
    return name, Path(module)


if __name__ == "__main__":
    sys.exit(main())
