"""Writes a new tool: a function that asks one question, its test, its events, its entries in the templates.

``python -m mcp_roundtrip_local.new_tool find_orders`` does it in the project at hand, ``make new-tool
NAME=find_orders`` is short for it. Either all is written, the front door's catalog included, or nothing.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_local.catalog import FRONT_DOOR, FUNCTIONS, render
from mcp_roundtrip_local.new_tool.files import files
from mcp_roundtrip_local.new_tool.template_entry import add_call, add_entry, simple_tool, taken
from mcp_roundtrip_local.template.model import TemplateError
from mcp_roundtrip_local.template.yaml_reader import load

TEMPLATE = Path("template.yaml")
EDGE = Path("edge", TEMPLATE)
"""Which a project need not have."""

CATALOG = FUNCTIONS / FRONT_DOOR / "catalog.json"

MAX_NAME = 40

RESERVED = frozenset({"server", "handler", "worker", "app", "live"})
"""What a function's module calls its own, and the folder of the events that expire."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class NewToolError(McpRoundtripError):
    """The tool cannot be written; the message says why. Nothing was."""


def planned(project: Path, name: str) -> dict[Path, str]:
    """Every file that a tool of this name writes or changes, with its text. Raises NewToolError."""
    _check(name)
    new = {project / path: text for path, text in files(name).items()}
    for path in (*new, *(project / folder / name for folder in ("functions", "events"))):
        if path.exists():
            raise NewToolError(f"{name!r}: {path} exists already")
    template = project / TEMPLATE
    try:
        document = load(template)
        if found := taken(document, name):
            raise NewToolError(f"{name!r}: {TEMPLATE} uses that name already, in {found!r}")
        text = add_entry(template.read_text("utf-8"), document, simple_tool(document), name)
    except TemplateError as error:
        raise NewToolError(f"{TEMPLATE}: {error}") from None
    app = new[project / FUNCTIONS / name / "app.py"]
    changed = {template: text, project / CATALOG: _catalog(project / FUNCTIONS, name, app)}
    if (edge := project / EDGE).exists():
        changed[edge] = add_call(edge.read_text("utf-8"), name)
    return {**new, **changed}


def write(files: Mapping[Path, str]) -> None:
    """Write them all; if one cannot be written, leave everything as it was and raise OSError."""
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
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in RESERVED:
        raise NewToolError(f"{name!r} means something else in Python or in this project")


def _catalog(functions: Path, name: str, app: str) -> str:
    """The catalog that the functions will have with the new one. Raises NewToolError."""
    with TemporaryDirectory() as folder:
        staged = Path(folder)
        for owner in functions.iterdir():
            if owner.is_dir():
                (staged / owner.name).symlink_to(owner.resolve())
        (staged / name).mkdir()
        (staged / name / "app.py").write_text(app, encoding="utf-8")
        try:
            return render(staged)
        except McpRoundtripError as error:
            raise NewToolError(str(error).replace(folder, str(functions))) from None
