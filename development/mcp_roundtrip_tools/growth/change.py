"""What the changes of an application have in common: its template, its folders, its catalog, the command."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS, digest_files, render_catalog
from mcp_roundtrip_tools.growth.functions import TEMPLATE
from mcp_roundtrip_tools.growth.names import GrowthError
from mcp_roundtrip_tools.growth.template_text import TemplateText
from mcp_roundtrip_tools.growth.tool_files import render_events, render_test
from mcp_roundtrip_tools.growth.writing import write
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load

CATALOG = FUNCTIONS / FRONT_DOOR / "catalog.json"

Files = dict[Path, str]
"""The text of the files that are added or changed, by path."""


def read_template(project: Path) -> tuple[dict[str, Any], TemplateText]:
    """Return the template as data and as text. Raises TemplateError."""
    document = load(project / TEMPLATE)
    return document, TemplateText((project / TEMPLATE).read_text("utf-8"))


def render_test_and_events(project: Path, name: str, app: Path, *, tasks: bool) -> Files:
    """Return the test of a tool in the module `app`, and its sample events. Raises GrowthError."""
    tests = project / "tests"
    folder = tests / "functions" if (tests / "functions").is_dir() else tests
    test, levels = folder / f"test_{name}.py", len(folder.relative_to(project).parts)
    module = PurePosixPath(app.relative_to(project).as_posix())
    files = {test: render_test(name, module, levels, tasks=tasks)}
    for file, text in render_events(name).items():
        files[project / "events" / app.parent.name / file] = text
    return files


def catalog_files(project: Path, changed: Mapping[Path, str]) -> Files:
    """Return the front door's catalog with these changes, and what depends on it. Raises GrowthError."""
    functions = project / FUNCTIONS
    with TemporaryDirectory() as folder:
        staged = Path(folder) / FUNCTIONS
        shutil.copytree(functions, staged, ignore=shutil.ignore_patterns("__pycache__"))
        write(
            {
                staged / path.relative_to(functions): text
                for path, text in changed.items()
                if path.is_relative_to(functions)
            }
        )
        try:
            catalog = render_catalog(staged)
        except McpRoundtripError as error:
            raise GrowthError(str(error).replace(str(staged), str(functions))) from None
    digests = digest_files(functions, catalog).items()
    return {
        project / CATALOG: catalog,
        **{path: text for path, text in digests if not path.is_file() or path.read_text("utf-8") != text},
        **edge_routes.changed_files(project, json.loads(catalog)),
    }


def refuse_existing(files: Mapping[Path, str]) -> None:
    """Refuse to replace files. Raises GrowthError."""
    for path in files:
        if path.exists():
            raise GrowthError(f"{path} exists already")


def run(plan: Callable[[], Files], closing: Callable[[Files], str]) -> int:
    """Plan a change and write it; return the exit status: 2 for an error that the user can correct.

    `closing` returns what the user does next.
    """
    try:
        files = plan()
        write(files)
    except TemplateError as error:
        print(f"error: {TEMPLATE}: {error}", file=sys.stderr)
        return 2
    except (GrowthError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(map(str, files)) or "All files are up to date.")
    print(f"\n{closing(files)}")
    return 0


def edit_first(files: Files) -> str:
    """Return what the user does with the files of a new tool."""
    return f"Now edit {next(iter(files))}. `make run` serves the tool."


def parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the arguments that both commands have."""
    made = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("name", help="the name of the tool, such as find_orders")
    made.add_argument("--tasks", action="store_true", help="a tool that becomes a task, which a worker runs")
    made.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    return made
