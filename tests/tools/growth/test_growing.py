import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.events import main as events
from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function, plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.lint.checking import main as lint
from mcp_roundtrip_tools.new.command import render
from mcp_roundtrip_tools.new.upgrade import main as upgrade
from mcp_roundtrip_tools.template.yaml_reader import parse
from support import cloudformation
from support.interpreters import output_of
from support.transformed_template import stack as stack_of_this_application
from support.transformed_template import transformed_file

ISSUER = "https://id.example"


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("orders")
    write({folder / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    write(plan_tool(folder, "find_parts"))
    write(plan_tool(folder, "count_parts", tasks=True))
    write(plan_tool(folder, "count_orders", tasks=True))
    write(plan_function(folder, "translate"))
    write(plan_function(folder, "summarize", tasks=True))
    write(plan_tool(folder, "find_words", "translate"))
    assert upgrade(["--project", str(folder)]) == 0
    return folder


def test_the_tests_of_all_tools_pass(grown):
    output_of(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=grown)


def test_the_sample_events_are_those_of_all_functions_and_the_code_has_no_findings(grown, monkeypatch):
    monkeypatch.chdir(grown)
    committed = {path: path.read_bytes() for path in (grown / "events").rglob("*.json")}
    assert events([]) == 0
    assert {path.parent.name for path in grown.glob("events/*/*.json")} == {
        "server",
        "translate",
        "summarize",
    }
    assert {path: path.read_bytes() for path in committed} == committed
    assert lint([]) == 0


def evaluated(project: Path, **given: str) -> cloudformation.Stack:
    """Return the stack of an application with its nested stacks."""
    parameters = {"AuthMode": "bearer", "TokenIssuer": ISSUER, **given}
    template = parse(transformed_file(project / "template.yaml", **parameters))
    return cloudformation.evaluate_stack(template, project, parameters)


def test_the_application_has_the_resources_of_this_one(grown):
    """The functions differ, and everything else is the same."""
    own, here = evaluated(grown), stack_of_this_application(AuthMode="bearer", TokenIssuer=ISSUER)
    kinds = {"AWS::Lambda::Function", "AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::IAM::Role"}
    examples = ("Approval", "Provision", "Server", "Summarize")

    def others(resources: Mapping[str, Any]) -> set[str]:
        return {
            name
            for name, each in resources.items()
            if each["Type"] not in kinds and not name.startswith((*examples, "RoundtripLayer"))
        }

    assert others(own.resources) == others(here.resources)
