"""Find the module of an application with one function and no front door, as `mcp-roundtrip new` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.model import TemplateError, handler_module
from mcp_roundtrip_tools.template.yaml_reader import load


def module_of_only_function(project: Path) -> Path:
    """Return the module of the only function in template.yaml. Raises TemplateError."""
    template = project / "template.yaml"
    resources = load(template).get("Resources") or {}
    functions = [each for each in resources.values() if each.get("Type") == "AWS::Serverless::Function"]
    modules = {path for each in functions if (path := _module(project, each.get("Properties") or {}))}
    if len(modules) != 1:
        raise TemplateError(
            f"{template} has {len(modules)} functions with a module: this command needs exactly one, or "
            "a front door in functions/front_door/"
        )
    return modules.pop()


def _module(project: Path, properties: Mapping[str, Any]) -> Path | None:
    code, handler = properties.get("CodeUri"), str(properties.get("Handler", "app.handler"))
    if not isinstance(code, str):
        return None
    path = project / code / handler_module(handler)
    return path if path.is_file() else None
