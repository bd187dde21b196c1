"""The sources of a function, and edited versions of them: "deploy another version" in the console."""

from __future__ import annotations

from typing import Any

from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.edited_sources import SourceError, source_files
from mcp_roundtrip_tools.template.model import TemplateError


def show_sources(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET sources/{function}`. Raises ConsoleError."""
    function = _function(app, request)
    project, edited = source_files(app.edited.project_folder(function)), app.edited.files(function)
    files = [{"name": name, "text": text} for name, text in sorted({**project, **edited}.items())]
    return {"functions": app.edited.sharing(function), "isEdited": bool(edited), "files": files}


def edit_sources(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `PUT sources/{function}`: run these files from the next invocation on. Raises ConsoleError."""
    function = _function(app, request)
    files = request.body.get("files")
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise ConsoleError(400, "files must be an object of texts by file name")
    project = source_files(app.edited.project_folder(function))
    changed = {name: text for name, text in files.items() if project.get(name) != text}
    return _run(app, function, changed)


def discard_sources(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `DELETE sources/{function}`: run the project's files again. Raises ConsoleError."""
    return _run(app, _function(app, request), {})


def _run(app: LocalApp, function: str, files: dict[str, str]) -> dict[str, Any]:
    try:
        app.edit(function, files)
    except (SourceError, TemplateError) as error:
        raise ConsoleError(422, str(error)) from None
    what = "an edited version" if files else "the project's version"
    app.recorder.note(
        f"console: {', '.join(app.edited.sharing(function))}: {what} runs from the next invocation on"
    )
    return {"isEdited": bool(files), "edited": sorted(files)}


def _function(app: LocalApp, request: ApiRequest) -> str:
    name = request.parameters["function"]
    if name not in app.functions():
        raise ConsoleError(404, "the template has no such function")
    return name
