from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mcp_roundtrip_local.new_tool.template_entry import (
    add_call,
    add_entry,
    find_conflict,
    find_copyable_tool,
    logical_id_prefix,
)
from mcp_roundtrip_local.template.model import TemplateError
from mcp_roundtrip_local.template.yaml_reader import load
from support.project import ROOT, TOOL

TEMPLATE = ROOT / "template.yaml"
TEXT = TEMPLATE.read_text("utf-8")
DOCUMENT = load(TEMPLATE)
MODEL = find_copyable_tool(DOCUMENT)
"""The tool that is copied."""

BEGUN = f"{MODEL}_{TOOL}"
"""A name that starts with the name of the copied tool."""

SUFFIXES = "|".join(
    name.removeprefix("Summarize") for name in DOCUMENT["Resources"] if name.startswith("Summarize")
)
"""Suffixes of the names of a simple tool's resources."""


def read(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "template.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return load(path)


def added(folder: Path, text: str, model: str, name: str) -> str:
    text = dedent(text)
    return add_entry(text, read(folder, text), model, name)


def names(tool: str) -> re.Pattern[str]:
    """Return the name of a tool and the prefixes of its logical ids."""
    return re.compile(
        rf"(?<![A-Za-z0-9_]){tool}(?![A-Za-z0-9_])|(?<!\w){logical_id_prefix(tool)}(?=(?:{SUFFIXES})(?![a-z]))"
    )


def swapped(text: str, one: str, other: str) -> str:
    marked = names(one).sub(lambda found: "\0" if found[0] == one else "\1", text)
    back = names(other).sub(lambda found: one if found[0] == other else logical_id_prefix(one), marked)
    return back.replace("\0", other).replace("\1", logical_id_prefix(other))


def unordered(value: Any) -> Any:
    """Return the value independent of order. JSON inside strings is parsed."""
    if isinstance(value, dict):
        return {key: unordered(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted((unordered(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, str) and value.startswith("{") and f'"{MODEL}"' in value:
        return json.loads(value)
    return value


def without(value: Any, tool: str) -> Any:
    """Return `value` without the parts of a tool."""

    def about(found: Any) -> bool:
        return names(tool).search(json.dumps(found)) is not None

    if isinstance(value, dict):
        return {key: without(member, tool) for key, member in value.items() if not names(tool).match(key)}
    if isinstance(value, list):
        shared = [item for item in value if names(MODEL).search(json.dumps(item))]
        return [without(item, tool) for item in value if item in shared or not about(item)]
    return value


every_name = pytest.mark.parametrize("name", [TOOL, BEGUN, "q7", "a2_b" + "c" * 36])


@every_name
def test_the_entry_differs_from_the_copied_one_only_in_names(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, add_entry(TEXT, DOCUMENT, MODEL, name))
    copied = {key: each for key, each in DOCUMENT["Resources"].items() if names(MODEL).match(key)}
    entry = {key: each for key, each in document["Resources"].items() if names(name).match(key)}
    assert f"{logical_id_prefix(MODEL)}Function" in copied
    assert swapped(json.dumps(entry), MODEL, name) == json.dumps(copied)


@every_name
def test_the_new_tool_is_added_wherever_the_copied_one_is_mentioned(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, add_entry(TEXT, DOCUMENT, MODEL, name))
    exchanged = json.loads(swapped(json.dumps(document), MODEL, name))
    assert unordered(exchanged) == unordered(document)
    assert len(names(name).findall(json.dumps(document))) == len(names(MODEL).findall(json.dumps(DOCUMENT)))


def test_nothing_else_changes(tmp_path: Path) -> None:
    document = read(tmp_path, add_entry(TEXT, DOCUMENT, MODEL, TOOL))
    assert without(unordered(document), TOOL) == unordered(DOCUMENT)


def test_existing_lines_stay_and_the_heading_is_copied_without_its_description() -> None:
    lines = add_entry(TEXT, DOCUMENT, MODEL, TOOL).splitlines()
    assert [line for line in TEXT.splitlines() if line.startswith(f"  # {MODEL}: ")]
    assert [line for line in lines if line.startswith(f"  # {TOOL}")] == [f"  # {TOOL}"]
    remaining = iter(line.rstrip(",}") for line in lines)
    # In this order, others between them. (Another owner is the last in its JSON object now.)
    assert all(line.rstrip(",}") in remaining for line in TEXT.splitlines())


# -- which tool is copied -------------------------------------------------------------------------------


def test_another_simple_tool_is_copied_if_the_first_was_removed(tmp_path: Path) -> None:
    document = read(tmp_path, add_entry(TEXT, DOCUMENT, MODEL, TOOL))
    resources = {name: each for name, each in document["Resources"].items() if not names(MODEL).match(name)}
    assert find_copyable_tool({**document, "Resources": resources}) != MODEL


def test_a_tool_with_variables_of_its_own_is_not_copied() -> None:
    remaining = ("FrontDoorFunction", "WeatherFunction", "ProvisionFunction", "ProvisionWorkerFunction")
    with pytest.raises(TemplateError, match="variables"):
        find_copyable_tool(
            {**DOCUMENT, "Resources": {name: DOCUMENT["Resources"][name] for name in remaining}}
        )


def test_the_twelfth_new_tool_is_added_like_the_first(tmp_path: Path) -> None:
    text, document = TEXT, DOCUMENT
    for number in range(12):
        text = add_entry(text, document, find_copyable_tool(document), f"{TOOL}_{number}")
        document = read(tmp_path, text)
    for number in range(12):
        exchanged = json.loads(swapped(json.dumps(document), MODEL, f"{TOOL}_{number}"))
        assert unordered(exchanged) == unordered(document)


# -- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("weather", "WeatherApiUrl"),
        ("provision_worker", "ProvisionWorkerFunction"),
        ("api", "Api"),
        ("task", "TaskDelivery"),
        ("throttles", "ThrottlesAlarm"),
        ("weather_crashes", "WeatherCrashesAlarm"),
        ("front_door", "FrontDoorFunction"),
        ("enabled", "enabled"),
        ("live", "live"),
    ],
)
def test_a_name_used_in_the_template_is_refused(name: str, found: str) -> None:
    assert find_conflict(DOCUMENT, name) == found


def test_another_spelling_of_used_ids_is_refused(tmp_path: Path) -> None:
    document = read(tmp_path, add_entry(TEXT, DOCUMENT, MODEL, f"{TOOL}_2"))
    assert find_conflict(document, f"{TOOL}2") == f"{logical_id_prefix(TOOL)}2Function"


@pytest.mark.parametrize("name", [TOOL.partition("_")[0], f"{TOOL}_2"])
def test_a_name_that_is_a_prefix_of_another_or_has_it_as_prefix_is_accepted(
    tmp_path: Path, name: str
) -> None:
    document = read(tmp_path, add_entry(TEXT, DOCUMENT, MODEL, TOOL))
    assert find_conflict(document, name) is None


# -- forms that template.yaml does not use ------------------------------------------------------------

SMALL = """
    Resources:
      # Above the first: about all.
      AFunction:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: functions/a/}
      # Not A.
      ABFunction:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: functions/a_b/}
      List:
        Type: Custom::List
        Properties:
          Owners: !Sub '{"a": "${AFunction.Arn}"}'
          Functions:
            - !Ref AFunction  # for reasons
            # about the next
            - !Ref ABFunction
          Text: |
            unchanged line

          # above the members
          Nested:
            - Id: a
              Dimensions:
                - !Ref AFunction
    """


def test_members_items_and_pairs_are_copied_to_the_end_of_their_container(tmp_path: Path) -> None:
    expected = """
    Resources:
      # Above the first: about all.
      AFunction:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: functions/a/}
      # Not A.
      ABFunction:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: functions/a_b/}
      List:
        Type: Custom::List
        Properties:
          Owners: !Sub '{"a": "${AFunction.Arn}",
          "new": "${NewFunction.Arn}"}'
          Functions:
            - !Ref AFunction  # for reasons
            # about the next
            - !Ref ABFunction
            - !Ref NewFunction  # for reasons
          Text: |
            unchanged line

          # above the members
          Nested:
            - Id: a
              Dimensions:
                - !Ref AFunction
            - Id: new
              Dimensions:
                - !Ref NewFunction
      NewFunction:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: functions/new/}
    """
    assert added(tmp_path, SMALL, "a", "new") == dedent(expected).rstrip(" ")


def test_a_second_tool_comes_after_the_first(tmp_path: Path) -> None:
    text = added(tmp_path, added(tmp_path, SMALL, "a", "new"), "a", "newer")
    resources = read(tmp_path, text)["Resources"]
    assert [*resources] == ["AFunction", "ABFunction", "List", "NewFunction", "NewerFunction"]
    properties = resources["List"]["Properties"]
    assert [each["Ref"] for each in properties["Functions"]][-2:] == ["NewFunction", "NewerFunction"]
    assert [*json.loads(properties["Owners"]["Fn::Sub"])] == ["a", "new", "newer"]


def test_a_last_line_without_an_end_gets_one(tmp_path: Path) -> None:
    assert added(tmp_path, dedent(SMALL).rstrip("\n"), "a", "new") == added(tmp_path, SMALL, "a", "new")


@pytest.mark.parametrize("place", ["!Ref AFunction", "[!Ref AFunction, !Ref ABFunction]", "functions/a/"])
def test_a_mention_that_cannot_be_copied_is_refused_with_its_line(tmp_path: Path, place: str) -> None:
    text = dedent(SMALL) + f"      One: {place}\n"
    with pytest.raises(TemplateError, match=f"line {len(text.splitlines())} "):
        added(tmp_path, text, "a", "new")


# -- the edge -------------------------------------------------------------------------------------------


def calls_in(text: str) -> dict[str, str]:
    table = re.search(r"const OWNERS = (\{.*?\n *\});", text, re.DOTALL)
    assert table is not None
    called: dict[str, str] = json.loads(table[1])["tools/call"]
    return called


def test_the_edge_sends_calls_of_new_tools_to_them() -> None:
    text = (ROOT / "edge/template.yaml").read_text("utf-8")
    twice = add_call(add_call(text, TOOL), BEGUN)
    assert calls_in(twice) == {**calls_in(text), TOOL: TOOL, BEGUN: BEGUN}
    remaining = iter(line.rstrip(",") for line in twice.splitlines())
    assert all(line.rstrip(",") in remaining for line in text.splitlines())
    assert len(twice.splitlines()) == len(text.splitlines()) + 2


def test_an_edge_without_a_table_is_not_changed() -> None:
    assert add_call(SMALL, TOOL) == SMALL
