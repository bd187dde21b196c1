"""Render what the stacks of platform/edge/ know about functions: routes and a table."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip.protocol.constants import PROMPTS_GET, RESOURCES_READ, TOOLS_CALL

EDGE = Path("platform/edge/template.yaml")
ROUTES = Path("platform/edge/routes.yaml")

TEMPLATE = Path(__file__).with_name("routes.yaml")
"""The routes of an application with one function, new_tool. API Gateway renames its WWW-Authenticate."""

MAX_TABLE = 7_000
"""Characters of the table. The whole CloudFront function has at most 10 KB."""

_LISTS = (
    (TOOLS_CALL, "tools", "name"),
    (PROMPTS_GET, "prompts", "name"),
    (RESOURCES_READ, "resources", "uri"),
)

_TABLE = re.compile(r"^( *)const OWNERS = \{.*?\n\1\};$", re.DOTALL | re.MULTILINE)


def changed_files(project: Path, catalog: Mapping[str, Any]) -> dict[Path, str]:
    """Return the text of the files in platform/edge/ for this catalog; none if the project has none."""
    edge = project / EDGE
    if not edge.is_file():
        return {}
    return {project / path: text for path, text in edge_files(edge.read_text("utf-8"), catalog).items()}


def edge_files(template: str, catalog: Mapping[str, Any]) -> dict[Path, str]:
    """Return `template` with the table for this catalog, and the routes if it has owners."""
    folders = owners(catalog)
    return {EDGE: with_table(template, catalog), **({ROUTES: render(folders)} if folders else {})}


def owners(catalog: Mapping[str, Any]) -> list[str]:
    """Return the folders of the catalog's functions in alphabetical order."""
    lists = ("tools", "prompts", "resources", "templates")
    return sorted({row["owner"] for name in lists for row in catalog.get(name, ())})


# The table of the CloudFront function


def with_table(template: str, catalog: Mapping[str, Any]) -> str:
    """Return platform/edge/template.yaml with the table for this catalog. Without a table it is unchanged."""

    def replace(found: re.Match[str]) -> str:
        margin = found[1]
        table = f"const OWNERS = {json.dumps(owner_table(catalog), indent=2)};"
        return "\n".join(margin + line for line in table.splitlines())

    return _TABLE.sub(replace, template)


def owner_table(catalog: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the owner by method and name. Calls of features that do not fit go to the front door."""
    table: dict[str, dict[str, str]] = {method: {} for method, *_ in _LISTS}
    left = MAX_TABLE - len(json.dumps(table, indent=2))
    for method, member, key in _LISTS:
        for row in catalog.get(member, ()):
            name, owner = row["definition"][key], row["owner"]
            left -= len(f"\n    {json.dumps(name)}: {json.dumps(owner)},")
            if left < 0:
                return table
            table[method][name] = owner
    return table


# The routes


def render(folders: Iterable[str]) -> str:
    """Return the text of routes.yaml: an integration, a route and a permission for each function."""
    head, resources, route = TEMPLATE.read_text("utf-8").partition("Resources:\n")
    routes = (route.replace("NewTool", logical_id_prefix(each)).replace("new_tool", each) for each in folders)
    return head + resources + "\n".join(routes)


def logical_id_prefix(folder: str) -> str:
    """Return the prefix of the logical ids of a function's resources."""
    return "".join(part.capitalize() for part in folder.split("_"))
