"""What runs: the functions of the template, their tools, and the users of the local issuer."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from mcp_roundtrip.entry.catalog_and_forwarding import Catalog
from mcp_roundtrip_tools.console.admission import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp, invoke_with_log
from mcp_roundtrip_tools.run.fresh_catalogs import CATALOG, is_front_door, owners_of
from mcp_roundtrip_tools.run.issuer.issuer import OAuthError
from mcp_roundtrip_tools.run.project import fingerprint
from mcp_roundtrip_tools.run.services.stand_ins import has_stand_ins
from mcp_roundtrip_tools.template.functions import find_function
from mcp_roundtrip_tools.template.model import Function, TemplateError, describe_left_out


def describe_application(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Return the document of `GET application`."""
    functions = app.functions()
    catalogs = [catalog for _, catalog in _catalogs(app)]
    return {
        "run": app.recorder.run_id,
        "mcpUrl": app.url(app.endpoint_path()),
        "functions": [_describe(function, app) for function in functions.values()],
        "owners": _owners_by_feature(app),
        "asking": [name for each in catalogs for name, tool in each.tools.items() if tool.asks],
        "defaultOwner": _default_owner(app),
        "users": list_users(app),
        "scopes": sorted({scope for each in catalogs for scope in (*each.scopes, *each.required_scopes)}),
        "template": app.template.name,
        "hasStandIns": has_stand_ins(app.template),
        "sourcesDigest": _sources_digest(app),
        "leftOut": describe_left_out(app.current()),
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


def _kind(function: Function) -> str:
    """Return "front_door", "worker" (it runs the tasks of another function) or "tool"."""
    if is_front_door(function):
        return "front_door"
    return "worker" if "worker" in function.handler.rpartition(".")[2] else "tool"


def _describe(function: Function, app: LocalApp) -> dict[str, Any]:
    path = function.code / function.module
    return {
        "name": function.name,
        "kind": _kind(function),
        "file": path.relative_to(app.folder).as_posix() if path.is_relative_to(app.folder) else str(path),
        "environments": [each.id for each in app.environments.running() if each.function == function.name],
    }


def _owners_by_feature(app: LocalApp) -> dict[str, str]:
    """Return the function of each tool, prompt, resource and template, by its name or URI."""
    found: dict[str, str] = {}
    for door, catalog in _catalogs(app):
        owners = owners_of(door, app.current())
        for kind in (catalog.tools, catalog.prompts, catalog.resources, catalog.templates):
            for name, feature in kind.items():
                if feature.owner in owners:
                    found.setdefault(name, owners[feature.owner].name)
    return found


def _catalogs(app: LocalApp) -> Iterator[tuple[Function, Catalog]]:
    """Yield each front door and its catalog."""
    for door in app.functions().values():
        if is_front_door(door):
            with suppress(OSError, ValueError):  # make catalog has not written it
                yield door, Catalog.read((app.code_folder(door.name) / CATALOG).read_text(encoding="utf-8"))


def issue_token(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST tokens`: a token with these scopes, or with the user's. Raises ConsoleError."""
    if app.issuer is None:
        raise ConsoleError(409, "no local issuer runs: start make run with USER=name or AuthMode=bearer")
    try:
        return {"token": app.issuer.token(request.body["user"], request.body.get("scopes"))}
    except OAuthError as error:
        raise ConsoleError(422, f"{error}") from None


def list_users(app: LocalApp) -> list[dict[str, Any]]:
    """Return the users of the local issuer; none without it. `scopes` is None for those that a tool needs."""
    users = () if app.issuer is None else app.issuer.users
    return [
        {"name": user.name, "scopes": None if user.scopes is None else sorted(user.scopes)} for user in users
    ]


def invoke_function(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST invocations` of an `event`; `function` is a reference of `find_function` or null.

    `template` is the file of the caller's: another application's run does not answer. Raises ConsoleError.
    """
    if request.body["template"] != str(app.template):
        raise ConsoleError(409, f"this run serves {app.template}")
    try:
        function = find_function(app.current(), request.body["function"])
    except TemplateError as error:
        raise ConsoleError(404, str(error)) from None
    return asdict(invoke_with_log(app, function.name, request.body["event"]))
