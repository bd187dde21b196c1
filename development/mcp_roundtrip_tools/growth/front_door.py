"""The files of the front door, which an application gets with its second function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from mcp_roundtrip_testing.loading import load_server
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.growth.entries import name_of
from mcp_roundtrip_tools.growth.functions import ToolFunction
from mcp_roundtrip_tools.growth.names import GrowthError

APP = '''\
"""The public MCP endpoint: answers discovery and lists, and forwards calls to the tools' functions."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

front_door = FrontDoor("$name", Path(__file__).with_name("catalog.json"))

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

    The front door has the name of the application's server, because clients know it by that name.
    """
    [first] = functions.values()
    name = load_server(first.module).info["name"]
    return {
        project / FUNCTIONS / FRONT_DOOR / "app.py": Template(APP).substitute(name=name),
        project / "tests/test_front_door.py": TEST,
    }


def check_owners(project: Path, document: Mapping[str, Any], functions: Mapping[str, ToolFunction]) -> None:
    """Refuse functions that a front door cannot find by the names of their folders. Raises GrowthError."""
    for folder, function in functions.items():
        expected = project / FUNCTIONS / folder / "app.py"
        if function.module != expected or name_of(document, function.logical_id) != folder:
            raise GrowthError(
                f"the front door needs {function.logical_id} in {expected}, with the name of its folder: "
                "`FunctionName: !Sub ${AWS::StackName}_" + folder + "`"
            )
