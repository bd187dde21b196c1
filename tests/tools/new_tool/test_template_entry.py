"""The entry of a new tool in template.yaml."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mcp_roundtrip_tools.new_tool.template_entry import (
    append_entry,
    find_conflict,
    logical_id_prefix,
    render_entry,
)
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT, TOOL

TEXT = (ROOT / "template.yaml").read_text("utf-8")
DOCUMENT = load(ROOT / "template.yaml")

MAX_LINES = {False: 25, True: 60}
"""How long the entry of a tool may be, by whether it has tasks."""


def read(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "template.yaml"
    path.write_text(text)
    return load(path)


def resources_of(document: dict[str, Any], tool: str) -> dict[str, Any]:
    prefix = logical_id_prefix(tool)
    return {name: each for name, each in document["Resources"].items() if name.startswith(prefix)}


# -- the text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [False, True])
def test_an_entry_is_short(tasks: bool) -> None:
    lines = ["", *render_entry("translate", tasks=tasks).splitlines()]
    assert len(lines) <= MAX_LINES[tasks]
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize("tasks", [False, True])
def test_only_lines_at_the_end_of_the_resources_are_added(tasks: bool) -> None:
    entry = render_entry(TOOL, tasks=tasks)
    before, after = append_entry(TEXT, entry).split("\n" + entry)
    assert before + after == TEXT
    assert before.endswith("\n")
    assert after.startswith("\nOutputs:")


def test_the_plain_entry_is_a_function_and_its_role(tmp_path: Path) -> None:
    document = read(tmp_path, append_entry(TEXT, render_entry(TOOL, tasks=False)))
    assert [*resources_of(document, TOOL)] == ["ScratchToolFunction", "ScratchToolRole"]
    assert {name: document["Resources"][name] for name in DOCUMENT["Resources"]} == DOCUMENT["Resources"]


def test_the_entry_with_tasks_has_the_resources_of_the_example(tmp_path: Path) -> None:
    document = read(tmp_path, append_entry(TEXT, render_entry(TOOL, tasks=True)))
    own = {name.removeprefix("ScratchTool"): each for name, each in resources_of(document, TOOL).items()}
    example = resources_of(DOCUMENT, "provision")
    assert own.keys() == {name.removeprefix("Provision") for name in example}
    for suffix, resource in own.items():
        model = example[f"Provision{suffix}"]
        assert {**resource, "Properties": 0} == {**model, "Properties": 0}
        assert resource["Properties"].keys() <= model["Properties"].keys()


def test_a_last_line_without_an_end_gets_one() -> None:
    assert append_entry("Resources:\n  A: {}", "  B: {}\n") == "Resources:\n  A: {}\n\n  B: {}\n"


def test_comments_before_the_next_section_stay_with_it() -> None:
    text = "Resources: # all\n  A: {}\n  # of A\n\n# about outputs\nOutputs: {}\n"
    expected = "Resources: # all\n  A: {}\n  # of A\n\n  B: {}\n\n# about outputs\nOutputs: {}\n"
    assert append_entry(text, "  B: {}\n") == expected


def test_a_second_tool_comes_after_the_first(tmp_path: Path) -> None:
    text = append_entry(TEXT, render_entry(TOOL, tasks=True))
    document = read(tmp_path, append_entry(text, render_entry("next_tool", tasks=False)))
    assert [*document["Resources"]][-2:] == ["NextToolFunction", "NextToolRole"]


def test_a_template_without_resources_is_refused() -> None:
    with pytest.raises(TemplateError, match="Resources"):
        append_entry("Outputs: {}\n", "")


# -- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("weather", "WeatherFunction"),
        ("provision", "ProvisionFunction"),
        ("undelivered", "UndeliveredTasks"),
        ("front_door", "FrontDoorFunction"),
        ("deployment", "DeploymentRole"),
    ],
)
def test_a_name_whose_resources_exist_is_refused(name: str, found: str) -> None:
    assert find_conflict(DOCUMENT, name) == found


def test_another_spelling_of_used_ids_is_refused(tmp_path: Path) -> None:
    document = read(tmp_path, append_entry(TEXT, render_entry(f"{TOOL}_2", tasks=False)))
    assert find_conflict(document, f"{TOOL}2") == f"{logical_id_prefix(TOOL)}2Function"


@pytest.mark.parametrize("name", [TOOL.partition("_")[0], f"{TOOL}_2", "api", "task", "live"])
def test_other_names_are_accepted(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, append_entry(TEXT, render_entry(TOOL, tasks=True)))
    assert find_conflict(document, name) is None


def test_blank_lines_between_resources_do_not_end_the_section() -> None:
    text = dedent("""
        Resources:
          A:
            Text: |
              unchanged line

          B: {}
        """)
    assert append_entry(text, "  C: {}\n") == text + "\n  C: {}\n"
