"""What runs: the functions of the template, the tools that they own, and how a client reaches them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from mcp_roundtrip_tools.console.requests import ApiRequest
from mcp_roundtrip_tools.console.tokens import list_users
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.fresh_catalogs import CATALOG, is_front_door, owners_of
from mcp_roundtrip_tools.run.project import fingerprint
from mcp_roundtrip_tools.run.services.stand_ins import has_stand_ins
from mcp_roundtrip_tools.template.left_out import describe_left_out
from mcp_roundtrip_tools.template.model import Function, function_name, short_name

WORKER_SETTING: Final = "MCP_TASK_WORKER"

LISTS: Final = ("tools", "prompts", "resources", "templates")


def describe_application(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Return the document of `GET application`."""
    functions = app.functions()
    path = app.endpoint_path()
    modes = {app.settings(name).get("MCP_AUTH_MODE", "") for name in functions} - {""}
    return {
        "run": app.recorder.run_id,
        "mcpUrl": f"http://{request.endpoint_host}{path}",
        "functions": [_describe(function, app) for function in functions.values()],
        "owners": _owners_by_feature(app),
        "asking": _asking_tools(app),
        "defaultOwner": _default_owner(app),
        "authMode": min(modes, default=None),
        "users": list_users(app),
        "scopes": _scopes(app),
        "parameters": dict(app.parameters),
        "template": app.template.name,
        "hasStandIns": has_stand_ins(app.template),
        "sourcesDigest": _sources_digest(app),
        "problems": [{"name": short_name(name), "text": text} for name, text in app.problems().items()],
        "warnings": [
            f"{short_name(name)}: {text}" for name, texts in app.warnings().items() for text in texts
        ],
        "isChecking": app.is_checking(),
        "leftOut": describe_left_out(app.current()),
        "protocolVersions": [PROTOCOL_VERSION, LEGACY_VERSION],
    }


def _sources_digest(app: LocalApp) -> str:
    """Return a text that changes with the templates and the sources: the page then loads its lists again."""
    seen = fingerprint([*app.current().templates, *(each.code for each in app.functions().values())])
    return sha256(repr(sorted(seen.items())).encode()).hexdigest()[:16]


def _default_owner(app: LocalApp) -> str | None:
    """Return the function behind the endpoint, which owns everything; None for a front door."""
    path = app.endpoint_path()
    found = next((route.function for route in app.routes() if route.path in (path, "$default")), None)
    function = app.functions().get(found or "")
    return None if function is None or is_front_door(function) else function.name


def function_kind(function: Function, functions: Mapping[str, Function]) -> str:
    """Return "front_door", "worker" (it runs tasks of another function) or "tool"."""
    if is_front_door(function):
        return "front_door"
    if any(_same_code(function, other) and _names_worker(other, function) for other in functions.values()):
        return "worker"
    return "worker" if function.name.endswith("_worker") else "tool"


def _same_code(function: Function, other: Function) -> bool:
    return function.name != other.name and function.code == other.code


def _names_worker(function: Function, worker: Function) -> bool:
    """Return whether a function sends its tasks to `worker`, directly and not through a queue."""
    return function_name(function.environment.get(WORKER_SETTING, "")) == worker.name


def _describe(function: Function, app: LocalApp) -> dict[str, Any]:
    return {
        "name": function.name,
        "kind": function_kind(function, app.functions()),
        "file": _relative(app.edited.project_folder(function.name) / function.module, app.folder),
        "isEdited": bool(app.edited.files(function.name)),
        "environments": [each.id for each in app.environments() if each.function == function.name],
    }


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def _owners_by_feature(app: LocalApp) -> dict[str, str]:
    """Return the function of each tool, prompt, resource and template, by its name or URI."""
    application = app.current()
    found: dict[str, str] = {}
    for door, catalog in _catalogs(app):
        owners = owners_of(application.functions[door], application)
        for row in _rows(catalog):
            definition, owner = row["definition"], owners.get(row["owner"])
            name = definition.get("uri") or definition.get("uriTemplate") or definition["name"]
            if owner is not None:
                found.setdefault(name, owner.name)
    return found


def _asking_tools(app: LocalApp) -> list[str]:
    """Return the tools that may ask, if a catalog says so."""
    rows = (row for _, catalog in _catalogs(app) for row in catalog.get("tools", ()))
    return [row["definition"]["name"] for row in rows if row.get("asks")]


def _scopes(app: LocalApp) -> list[str]:
    """Return the scopes that features need, and those that imply others."""
    found: set[str] = set()
    for _, catalog in _catalogs(app):
        found |= {*catalog.get("scopes", {})}
        found |= {scope for row in _rows(catalog) for scope in row.get("scopes", ())}
    return sorted(found)


def _catalogs(app: LocalApp) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the catalog of each front door."""
    for door in app.functions().values():
        if is_front_door(door):
            try:
                text = (app.code_folder(door.name) / CATALOG).read_text(encoding="utf-8")
                yield door.name, json.loads(text)
            except (OSError, ValueError):  # make catalog has not written it
                continue


def _rows(catalog: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [row for name in LISTS for row in catalog.get(name, ())]
