"""Write the front door's catalog: the tools, prompts, resources and skills that every function registers.

The owners' digests, the manifests of skills and platform/edge/ are written, too. With --check, only report
whether all files are current.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from traceback import format_exception
from typing import Any

from mcp_roundtrip.auth.scope_hierarchy import ScopeHierarchy
from mcp_roundtrip.deployment.wiring import CATALOG_DIGEST
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.errors import DefinitionError, McpRoundtripError
from mcp_roundtrip.protocol.resource_uris import spelling_key
from mcp_roundtrip.protocol.strict_json import digest
from mcp_roundtrip.server.prompts_and_resources import Resource
from mcp_roundtrip.server.request_types import Feature
from mcp_roundtrip.server.tools import Tool
from mcp_roundtrip_testing.execution_environments import load_module, servers_in
from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.catalog.skill_folders import manifest_files, skill_rows

FUNCTIONS = Path("functions")
FRONT_DOOR = "front_door"
"""The folder of the catalog. Its own module registers nothing."""

CATALOG = "catalog.json"


class CatalogError(McpRoundtripError):
    """The functions cannot share a front door; the message names them and the reason."""


def load_function_servers(functions: Path) -> dict[str, Server]:
    """Return the servers of the functions' `app.py` by owner, without the front door. Raises CatalogError."""
    paths = {path.parent.name: path for path in sorted(functions.glob("*/app.py"))}
    return load_servers({owner: path for owner, path in paths.items() if owner != FRONT_DOOR})


def load_servers(modules: Mapping[str, Path]) -> dict[str, Server]:
    """Return the servers of modules by owner. Raises one CatalogError for all invalid modules."""
    held: dict[str, Server] = {}
    problems: list[str] = []
    for owner, path in modules.items():
        try:
            server = _server(path)
        except CatalogError as error:
            problems.append(str(error))
        else:
            held |= {} if server is None else {owner: server}
    if problems:
        raise CatalogError("\n".join(problems))
    return held


def _server(path: Path) -> Server | None:
    try:
        held = servers_in(load_module(path))
    except DefinitionError as error:
        raise CatalogError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from error
    except (Exception, SystemExit) as error:  # importing a module may raise anything
        if not any(b"mcp_roundtrip" in each.read_bytes() for each in path.parent.rglob("*.py")):
            place = Path(*path.parts[-3:])
            print(f"{place} is left out: it is no MCP server, and raises {error!r}", file=sys.stderr)
            return None
        raise CatalogError(f"{path} cannot be imported:\n{_traceback(error, path)}") from error
    if len(held) > 1:
        raise CatalogError(f"{path} holds {len(held)} servers: a Lambda function has one handler")
    return held[0] if held else None


def _traceback(error: BaseException, path: Path) -> str:
    """Return the traceback, starting in the module at `path`."""
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename) != path.absolute():
        frame = frame.tb_next
    return "".join(format_exception(type(error), error, frame)).strip()


def catalog_lists(servers: Mapping[str, Server]) -> dict[str, list[dict[str, Any]]]:
    """Return the lists of the catalog. Raises CatalogError if two owners register the same name.

    Tools that every client can call come first, because people who try a server call the first one.
    """
    return {
        "tools": list(_rows({owner: server.tools for owner, server in servers.items()})),
        "prompts": list(_rows({owner: server.prompts for owner, server in servers.items()})),
        "resources": list(_rows(_resources(servers, is_static=True))),
        "templates": list(_rows(_resources(servers, is_static=False))),
        "skills": skill_rows({owner: server.skill_folders for owner, server in servers.items()}),
    }


def _resources(servers: Mapping[str, Server], *, is_static: bool) -> dict[str, dict[str, Resource]]:
    return {
        owner: {uri: each for uri, each in server.resources.items() if each.template.is_static is is_static}
        for owner, server in servers.items()
    }


def _rows(features: Mapping[str, Mapping[str, Feature]]) -> Iterable[dict[str, Any]]:
    owners: dict[str, str] = {}
    items = [(owner, name, each) for owner, owned in features.items() for name, each in owned.items()]
    for owner, name, feature in sorted(items, key=lambda item: bool(item[2].requires)):
        key = spelling_key(name) if feature.kind == "resource" else name
        if key in owners:
            raise CatalogError(
                f"{feature.kind} {name!r} is registered by {owners[key]!r} and by {owner!r}: "
                "behind one front door a name belongs to one function"
            )
        owners[key] = owner
        task = {"task": feature.task} if feature.task else {}
        scopes = {"scopes": list(feature.scopes)} if feature.scopes else {}
        view = {"view": feature.view_uri} if isinstance(feature, Tool) and feature.view_uri else {}
        yield {
            "owner": owner,
            **task,
            **scopes,
            **_questions(feature),
            **view,
            "definition": feature.definition(),
        }


def _questions(feature: Feature) -> dict[str, Any]:
    """Return the members of a tool that may ask."""
    if not isinstance(feature, Tool) or not feature.asks:
        return {}
    return {"asks": True, "channels": list(feature.channels)}


def merged_scopes(servers: Mapping[str, Server]) -> dict[str, list[str]]:
    """Return the scopes that each scope implies, over all owners. Raises CatalogError for a contradiction."""
    implied: dict[str, set[str]] = {}
    for server in servers.values():
        for scope, narrower in server.scopes.items():
            implied.setdefault(scope, set()).update(narrower)
    try:
        ScopeHierarchy.from_direct({scope: tuple(narrower) for scope, narrower in implied.items()})
    except DefinitionError as error:
        raise CatalogError(f"the servers' scopes, taken together: {error}") from None
    return {scope: sorted(implied[scope]) for scope in sorted(implied)}


def hides_unauthorized(servers: Mapping[str, Server]) -> bool:
    """Return whether unauthorized features are hidden. Raises CatalogError if owners differ."""
    by_choice: dict[bool, list[str]] = {True: [], False: []}
    for owner, server in servers.items():
        kinds: tuple[Mapping[str, Feature], ...] = (server.tools, server.prompts, server.resources)
        scopes = [feature.scopes for kind in kinds for feature in kind.values()]
        if any((*scopes, *server.skill_folders.values())):
            by_choice[server.options.hide_unauthorized].append(owner)
    if by_choice[True] and by_choice[False]:
        raise CatalogError(
            f"hide_unauthorized is set for {by_choice[True]} and not for {by_choice[False]}: "
            "set it for all servers with scopes, or for none"
        )
    return bool(by_choice[True])


def _owner_digests(lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, str]:
    """Return a digest of each owner's features, which the owner compares with that of the front door."""
    rows: dict[str, list[Any]] = {}
    for kind, items in lists.items():
        for row in items:
            rows.setdefault(row["owner"], []).append([kind, row])
    return {owner: digest("mcp-rs/v1/catalog", rows[owner], size=12) for owner in sorted(rows)}


def catalog_of(servers: Mapping[str, Server]) -> dict[str, Any]:
    """Return the catalog of these servers. It is deterministic. Raises CatalogError."""
    catalog: dict[str, Any] = {
        member: rows for member, rows in catalog_lists(servers).items() if rows or member == "tools"
    }
    if digests := _owner_digests(catalog):
        catalog["digests"] = digests
    if implied := merged_scopes(servers):
        catalog["scopes"] = implied
    if hides_unauthorized(servers):
        catalog["hideUnauthorized"] = True
    return catalog


def render_servers(servers: Mapping[str, Server]) -> str:
    """Return the text of the catalog of these servers. Raises CatalogError."""
    return _text(catalog_of(servers))


def _text(catalog: Mapping[str, Any]) -> str:
    return json.dumps(catalog, indent=2, ensure_ascii=False) + "\n"


def catalog_files(functions: Path, servers: Mapping[str, Server]) -> dict[Path, str]:
    """Return the front door's catalog, each owner's digest, and platform/edge/. Raises CatalogError."""
    catalog = catalog_of(servers)
    digests: Mapping[str, str] = catalog.get("digests", {})
    return {
        functions / FRONT_DOOR / CATALOG: _text(catalog),
        **{functions / owner / CATALOG_DIGEST: f"{digest}\n" for owner, digest in digests.items()},
        **edge_routes.changed_files(functions.parent, catalog),
    }


def changed(files: Mapping[Path, str]) -> dict[Path, str]:
    """Return the files that do not exist or have another text."""
    return {
        path: text
        for path, text in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


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
            print(f"Wrote {path}.")
    return 1 if given.check and stale else 0


def _owner(text: str) -> tuple[str, Path]:
    name, _, module = text.partition("=")
    return name, Path(module)
