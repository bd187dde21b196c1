"""Plan and write the files of a new tool. Either all files are written, or none."""

from __future__ import annotations

import builtins
import json
import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS, render_catalog
from mcp_roundtrip_tools.new_tool.files import render_files
from mcp_roundtrip_tools.new_tool.in_application import NotPlannable, plan_in_application
from mcp_roundtrip_tools.new_tool.template_entry import append_entry, find_conflict, render_entry
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load

TEMPLATE = Path("template.yaml")
CATALOG = FUNCTIONS / FRONT_DOOR / "catalog.json"

MAX_NAME = 30
"""A function's name has at most 64 characters: the stack's name, `_`, this name, and `_worker`."""

RESERVED_ENDS = ("_worker", "_tasks")
"""What the names of a tool's worker and queue end with."""

RESERVED = frozenset({"server", "handler", "worker", "app", "live"})
"""Names that a function's module uses, and the folder of the live events."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class NewToolError(McpRoundtripError):
    """The tool cannot be written; the message says why. No file was changed."""


def plan_files(project: Path, name: str, *, tasks: bool = False) -> dict[Path, str]:
    """Return the files that a tool of this name adds or changes, with their text. Raises NewToolError.

    With `tasks`, the tool becomes a task, which a worker function runs. A project without a front door has
    one function, which gets the tool.
    """
    _check(name)
    if not (project / FUNCTIONS / FRONT_DOOR).is_dir():
        return _in_application(project, name, needs_front_door=tasks)
    new = {project / path: text for path, text in render_files(name, tasks=tasks).items()}
    for path in (*new, *(project / folder / name for folder in ("functions", "events"))):
        if path.exists():
            raise NewToolError(f"{name!r}: {path} exists already")
    try:
        if found := find_conflict(load(project / TEMPLATE), name):
            raise NewToolError(f"{name!r}: {TEMPLATE} uses that name in {found!r}")
        template = (project / TEMPLATE).read_text("utf-8")
        changed = {project / TEMPLATE: append_entry(template, render_entry(name, tasks=tasks))}
    except TemplateError as error:
        raise NewToolError(f"{TEMPLATE}: {error}") from None
    app = new[project / FUNCTIONS / name / "app.py"]
    catalog = _catalog(project / FUNCTIONS, name, app)
    edge = edge_routes.changed_files(project, json.loads(catalog))
    return {**new, **changed, project / CATALOG: catalog, **edge}


def _in_application(project: Path, name: str, *, needs_front_door: bool) -> dict[Path, str]:
    if needs_front_door:
        raise NewToolError(
            "a tool with tasks is a function of its own behind a front door: "
            f"{project / FUNCTIONS / FRONT_DOOR} does not exist"
        )
    try:
        return plan_in_application(project, name)
    except NotPlannable as error:
        raise NewToolError(str(error)) from None


def write(files: Mapping[Path, str]) -> None:
    """Write all files. If one fails, restore the others and raise OSError."""
    before = {path: path.read_bytes() if path.exists() else None for path in files}
    made: list[Path] = []
    try:
        for path, text in files.items():
            made += (folder for folder in reversed(path.parents) if not folder.exists())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except BaseException:
        for path, content in before.items():
            if content is not None:
                path.write_bytes(content)
            elif path.is_file():
                path.unlink()
        for folder in reversed(made):
            if folder.is_dir():
                folder.rmdir()
        raise


def _check(name: str) -> None:
    if not name:
        raise NewToolError("a name is missing: make new-tool NAME=find_orders")
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise NewToolError(
            f"{name!r} must be at most {MAX_NAME} lower-case letters, digits and single underscores between "
            "them, and begin with a letter"
        )
    if name.endswith(RESERVED_ENDS):
        raise NewToolError(f"{name!r} ends like the name of a worker or of its queue")
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in RESERVED:
        raise NewToolError(f"{name!r} is reserved in Python or in this project")


def _catalog(functions: Path, name: str, app: str) -> str:
    """Return the catalog of the functions including the new one. Raises NewToolError."""
    with TemporaryDirectory() as folder:
        staged = Path(folder)
        for owner in functions.iterdir():
            if owner.is_dir():
                (staged / owner.name).symlink_to(owner.resolve())
        (staged / name).mkdir()
        (staged / name / "app.py").write_text(app, encoding="utf-8")
        try:
            return render_catalog(staged)
        except McpRoundtripError as error:
            raise NewToolError(str(error).replace(folder, str(functions))) from None
