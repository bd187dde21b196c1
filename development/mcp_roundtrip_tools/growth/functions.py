"""Find the functions of an application that are MCP servers, in template.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.template.model import TemplateError, handler_module

TEMPLATE = Path("template.yaml")

_IMPORT = re.compile(r"^(?:from|import) mcp_roundtrip\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """A function with tools. `worker` is the logical id of the function that runs its tasks, if any."""

    logical_id: str
    module: Path
    worker: str | None = None


def tool_functions(project: Path, document: Mapping[str, Any]) -> dict[str, ToolFunction]:
    """Return the functions by the names of their folders, without the front door and workers."""
    found: dict[str, tuple[str, Path]] = {}
    workers: dict[Path, str] = {}
    for logical_id, properties in functions_of(document).items():
        module = _module(project, properties)
        if module is None or module.parent == project / FUNCTIONS / FRONT_DOOR:
            continue
        if str(properties.get("Handler", "")).endswith(".worker"):
            workers[module] = logical_id
        else:
            found[module.parent.name] = logical_id, module
    return {
        folder: ToolFunction(logical_id, module, workers.get(module))
        for folder, (logical_id, module) in found.items()
    }


def select_function(functions: Mapping[str, ToolFunction], folder: str | None) -> ToolFunction:
    """Return the function of this folder, or the only one. Raises TemplateError."""
    listed = ", ".join(sorted(functions))
    if not functions:
        raise TemplateError("it has no function whose module imports mcp_roundtrip")
    if folder is None and len(functions) > 1:
        raise TemplateError(f"several functions can get the tool; name one with FUNCTION=…: {listed}")
    if folder is not None and folder not in functions:
        raise TemplateError(f"no function {folder!r} can get the tool, only: {listed}")
    return functions[folder or listed]


def functions_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the properties of the template's functions by logical id, with those of its Globals."""
    shared = ((document.get("Globals") or {}).get("Function")) or {}
    return {
        name: {**shared, **(resource.get("Properties") or {})}
        for name, resource in document["Resources"].items()
        if isinstance(resource, dict) and resource.get("Type") == "AWS::Serverless::Function"
    }


def _module(project: Path, properties: Mapping[str, Any]) -> Path | None:
    code, handler = properties.get("CodeUri"), properties.get("Handler", "app.handler")
    if not isinstance(code, str) or not isinstance(handler, str):
        return None
    path = project / code / handler_module(handler)
    is_server = path.is_file() and _IMPORT.search(path.read_text("utf-8"))
    return path if is_server else None
