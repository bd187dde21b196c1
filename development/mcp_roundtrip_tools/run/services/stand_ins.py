"""Stand-ins for the services that functions call: Python files, served on 127.0.0.1 while the template runs.

`Metadata.LocalRun` of the template names them in `StandIns`, and has `Variables`. Each file defines
``respond(request: Request) -> Response``. Every function gets a stand-in's URL in the variable of its name;
both override the template's environment variables.
"""

import importlib.util
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES
from mcp_roundtrip_tools.run.http.messages import Respond
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load, scalar_text


@contextmanager
def serve_stand_ins(template: Path, names: Collection[str] = LOCAL_NAMES) -> Iterator[dict[str, str]]:
    """Serve the template's stand-ins until the block ends; yield the variables that functions need.

    Requests may name one of `names` as host. Raises TemplateError for an invalid file or variable.
    """
    section = _section(template)
    found = {name: _variable(name, value) for name, value in section.get("Variables", {}).items()}
    with ExitStack() as stack:
        for name, file in section.get("StandIns", {}).items():
            server = HttpServer(load_respond(template.parent / file), names=names).start()
            stack.callback(server.close)
            found[name] = server.url
        yield found


def _variable(name: str, value: Any) -> str:
    try:
        return scalar_text(value)
    except TypeError as error:
        raise TemplateError(f"Metadata.LocalRun.Variables.{name}: {error}") from None


def has_stand_ins(template: Path) -> bool:
    """Return whether a template names stand-ins or variables for local runs."""
    section = _section(template)
    return bool(section.get("StandIns") or section.get("Variables"))


def _section(template: Path) -> Mapping[str, Mapping[str, Any]]:
    metadata = load(template).get("Metadata")
    section = (metadata.get("LocalRun") if isinstance(metadata, dict) else None) or {}
    if isinstance(section, dict) and section.keys() <= {"StandIns", "Variables"}:
        members = {name: value or {} for name, value in section.items()}
        if all(isinstance(each, dict) for each in members.values()):
            return members
    raise TemplateError("Metadata.LocalRun: must have only the members StandIns and Variables, two objects")


def load_respond(file: Path) -> Respond:
    """Import a stand-in's file and return its `respond`. Raises TemplateError."""
    spec = importlib.util.spec_from_file_location(f"stand_in_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise TemplateError(f"Metadata.LocalRun.StandIns: {file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    respond: Any = getattr(module, "respond", None)
    if not callable(respond):
        raise TemplateError(f"Metadata.LocalRun.StandIns: {file} defines no respond(request)")
    found: Respond = respond
    return found
