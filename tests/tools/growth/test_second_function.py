"""``mcp-roundtrip new-function`` in a new application, which gets the front door."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_roundtrip_testing.loading import load_module
from mcp_roundtrip_tools.growth.names import GrowthError
from mcp_roundtrip_tools.growth.new_function import main, plan_function
from mcp_roundtrip_tools.growth.writing import write
from mcp_roundtrip_tools.new.__main__ import render
from mcp_roundtrip_tools.template.model import TemplateError
from support.project import contents

SERVER = "functions/server/app.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a new application."""
    write({tmp_path / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    return tmp_path


def test_the_second_function_adds_the_front_door_and_the_third_does_not(project: Path) -> None:
    front_door = {
        "functions/front_door/app.py",
        "functions/front_door/catalog.json",
        "tests/test_front_door.py",
    }
    before = set(contents(project))
    write(plan_function(project, "translate"))
    second = {path for path in contents(project) if "." in path} - before
    assert second == front_door | {
        "events/translate/translate.json",
        "events/translate/translate_bad_arguments.json",
        "functions/translate/app.py",
        "tests/test_translate.py",
    }
    files = {path.relative_to(project).as_posix() for path in plan_function(project, "summarize")}
    assert files & front_door == {"functions/front_door/catalog.json"}


def test_clients_find_the_server_by_the_same_name(project: Path) -> None:
    write(plan_function(project, "translate"))
    assert load_module(project / "functions/front_door/app.py").front_door.info["name"] == "orders"


@pytest.mark.parametrize(
    ("path", "before", "after", "message"),
    [
        (SERVER, "server = ", "raise SystemError('offline')\nserver = ", "SystemError: offline"),
        (SERVER, "def order_status", "def translate", "'translate' is registered by"),
        ("template.yaml", "${AWS::StackName}_server", "${AWS::StackName}_other", "name of its folder"),
        ("template.yaml", "  Endpoint:", "  Routes:", r"no Resources\.Endpoint"),
        ("template.yaml", "MCP_SETTINGS", "SETTINGS", "MCP_SETTINGS in Globals"),
        ("template.yaml", "  Platform:", "  Other:", "no Platform"),
        ("template.yaml", "  ServerRole:", "  TranslateRole:", "TranslateRole"),
        ("samconfig.toml", '"orders-prod"', '"' + "o" * 50 + '"', "Lambda accepts 64"),
    ],
)
def test_an_application_that_cannot_get_a_function_is_not_changed(
    project: Path, path: str, before: str, after: str, message: str
) -> None:
    changed = project / path
    assert before in changed.read_text("utf-8")
    changed.write_text(changed.read_text("utf-8").replace(before, after))
    found = contents(project)
    with pytest.raises((GrowthError, TemplateError), match=message):
        plan_function(project, "translate", tasks=True)
    assert main(["translate", "--tasks", "--project", str(project)]) == 2
    assert contents(project) == found


@pytest.mark.parametrize("path", ["tests/test_front_door.py", "tests/test_translate.py", "events/translate"])
def test_no_file_of_the_author_is_replaced(project: Path, path: str) -> None:
    (project / path).mkdir()
    with pytest.raises(GrowthError, match="exists already"):
        plan_function(project, "translate")
