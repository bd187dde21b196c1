"""The files of the front door, which an application gets with its second function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from string import Template
from typing import Any

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip_testing.loading import load_server
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.growth.entries import name_of
from mcp_roundtrip_tools.growth.functions import ToolFunction
from mcp_roundtrip_tools.growth.names import GrowthError

APP = '''\
"""The public MCP endpoint: answers discovery and lists, and forwards calls to the tools' functions."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

front_door = FrontDoor($arguments)

handler = front_door.lambda_handler
'''

TEST = '''\
"""The front door lists what the functions register."""

from pathlib import Path

from mcp_roundtrip_tools.catalog.__main__ import main

FUNCTIONS = Path(__file__).parents[1] / "functions"


def test_the_catalog_is_current() -> None:
    assert main(["--functions", str(FUNCTIONS), "--check"]) == 0, "run make catalog"
'''


def front_door_files(project: Path, functions: Mapping[str, ToolFunction]) -> dict[Path, str]:
    """Return the module of the front door and the test of its catalog.

    The front door is what clients know as the server, so it has the options of the application's server that
    clients see.
    """
    [first] = functions.values()
    return {
        project / FUNCTIONS / FRONT_DOOR / "app.py": _app(load_server(first.module)),
        project / "tests/test_front_door.py": TEST,
    }


def _app(server: Server) -> str:
    arguments = [_literal(server.info["name"]), 'Path(__file__).with_name("catalog.json")']
    options = [f"{name}={_literal(value)}" for name, value in _options(server).items()]
    lines = "".join(f"\n    {each}," for each in (*arguments, *options)) + "\n"
    return Template(APP).substitute(arguments=lines if options else ", ".join(arguments))


def _literal(value: Any) -> str:
    """Return the Python expression of a value, with the quotes that formatters prefer."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, list, tuple)) else repr(value)


def _options(server: Server) -> dict[str, Any]:
    """Return the keywords of the server that the front door needs, without those that have their default."""
    options, parameters = server.options, signature(FrontDoor).parameters
    given = {
        "version": server.info["version"],
        "title": server.info.get("title"),
        "instructions": options.instructions,
        "icons": options.branding.get("icons"),
        "website_url": options.branding.get("websiteUrl"),
        "description": options.description,
        "legacy_clients": server.legacy_clients,
        "legacy_tasks": server.legacy_tasks,
        "page_size": options.page_size,
        "list_ttl_ms": options.list_ttl_ms,
        "initial_scopes": server.initial_scopes,
    }
    return {name: value for name, value in given.items() if value != parameters[name].default}


def check_owners(project: Path, document: Mapping[str, Any], functions: Mapping[str, ToolFunction]) -> None:
    """Refuse functions that a front door cannot find by the names of their folders. Raises GrowthError."""
    for folder, function in functions.items():
        expected = project / FUNCTIONS / folder / "app.py"
        if function.module != expected or name_of(document, function.logical_id) != folder:
            raise GrowthError(
                f"the front door needs {function.logical_id} in {expected}, with the name of its folder: "
                "`FunctionName: !Sub ${AWS::StackName}_" + folder + "`"
            )
