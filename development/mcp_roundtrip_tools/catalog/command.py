"""Write the front door's catalog: the tools, prompts, resources and skills that every function registers.

The owners' digests, the manifests of skills and platform/edge/ are written, too. With --check, only report
whether all files are current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_tools.catalog.catalog import (
    CATALOG,
    FRONT_DOOR,
    FUNCTIONS,
    CatalogError,
    catalog_files,
    changed,
    load_function_servers,
    load_servers,
    render_servers,
)
from mcp_roundtrip_tools.catalog.skill_folders import manifest_files


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status. Raises CatalogError and SkillError."""
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
    output = given.output or functions / FRONT_DOOR / CATALOG
    sys.path.extend(given.path)
    found = load_servers(dict(given.owner)) if given.owner else load_function_servers(functions)
    files = {output: render_servers(found)} if given.output else catalog_files(functions, found)
    manifests = manifest_files(found.values())
    has_catalog = output.parent.is_dir()
    if not has_catalog and not manifests:
        raise CatalogError(
            f"there is nothing to write: {output.parent}, the folder of a front door, does not exist, "
            "and no function serves skills"
        )
    stale = changed({**files, **manifests} if has_catalog else manifests)
    for path, text in stale.items():
        if given.check:
            print(f"{path} is stale: run `make catalog`", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if given.check and stale else 0


def _owner(text: str) -> tuple[str, Path]:
    name, _, module = text.partition("=")
    return name, Path(module)
