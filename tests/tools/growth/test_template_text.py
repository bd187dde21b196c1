"""Edits of template.yaml as text: only the added lines differ, and comments stay where they were."""

from __future__ import annotations

import difflib
from pathlib import Path
from textwrap import dedent

import pytest

from mcp_roundtrip_tools.growth.entries import TemplateText
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import parse
from support.project import ROOT

TEXT = dedent("""\
    # an application
    Resources:
      # the first
      A:
        Type: T  # its type
        Properties:
          List:
          - one  # the first item
          - two
          Text: |
            kept

          # before Ref
          Value: !Ref Other  # why
          Flow: {A: 1}

      # the second
      B:
        Type: T

    # about outputs
    Outputs:
      Url: x
    """)


def added(before: str, after: str) -> list[str]:
    """Return the added lines; the others must be the same."""
    changes = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert all(line.startswith("+ ") for line in changes)
    return [line[2:] for line in changes]


def test_members_are_appended_with_the_indentation_of_their_neighbours() -> None:
    template = TemplateText(TEXT)
    template.append(["New: 1", "Nested:", "  Deep: 2"], "Resources", "A", "Properties")
    assert added(TEXT, template.text) == ["      New: 1", "      Nested:", "        Deep: 2"]
    assert "      Flow: {A: 1}\n      New: 1\n" in template.text


def test_items_are_appended_to_a_list() -> None:
    template = TemplateText(TEXT)
    template.append(["- three"], "Resources", "A", "Properties", "List")
    assert "      - two\n      - three\n" in template.text
    assert added(TEXT, template.text) == ["      - three"]


def test_the_end_of_a_section_is_before_the_comments_of_the_next() -> None:
    template = TemplateText(TEXT)
    template.append(["", "C: {}"], "Resources")
    assert template.text.endswith("    Type: T\n\n  C: {}\n\n# about outputs\nOutputs:\n  Url: x\n")


def test_a_member_is_inserted_after_another_one() -> None:
    template = TemplateText(TEXT)
    template.insert_after(["C: {}"], "Resources", "A")
    assert "      Flow: {A: 1}\n  C: {}\n\n  # the second\n" in template.text


def test_a_member_is_inserted_before_another_one_and_its_comments() -> None:
    template = TemplateText(TEXT)
    template.insert_before(["C: {}", ""], "Resources", "B")
    assert "\n\n  C: {}\n\n  # the second\n  B:\n" in template.text


def test_a_value_is_replaced_and_its_comment_stays() -> None:
    template = TemplateText(TEXT)
    template.replace("!Ref New", "Resources", "A", "Properties", "Value")
    assert template.text == TEXT.replace("!Ref Other", "!Ref New")


def test_the_lines_of_a_member_have_no_common_indentation() -> None:
    template = TemplateText(TEXT)
    assert template.member("Resources", "B") == ["B:", "  Type: T"]
    assert template.member("Resources", "A", "Properties", "Value") == ["Value: !Ref Other  # why"]
    assert template.member("Resources", "A", "Properties", "Text") == ["Text: |", "  kept", ""]
    assert template.member("Resources", "C") == []


def test_a_last_line_without_an_end_gets_one() -> None:
    template = TemplateText("Resources:\n  A: {}")
    template.append(["B: {}"], "Resources")
    assert template.text == "Resources:\n  A: {}\n  B: {}\n"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("Resources", "A", "Properties", "Flow"), "block style"),
        (("Resources", "A", "Type"), "block style"),
        (("Resources", "C", "Properties"), "no Resources.C.Properties"),
    ],
)
def test_a_place_that_cannot_be_extended_is_named(path: tuple[str, ...], message: str) -> None:
    template = TemplateText(TEXT)
    with pytest.raises(TemplateError, match=message):
        template.append(["B: 1"], *path)
    assert template.text == TEXT


def test_a_value_of_several_lines_is_not_replaced() -> None:
    with pytest.raises(TemplateError, match="one line"):
        TemplateText(TEXT).replace("x", "Resources", "A", "Properties", "List")


@pytest.mark.parametrize("text", ["- a list\n", "", "Resources: [\n"])
def test_a_text_that_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        TemplateText(text)


@pytest.mark.parametrize("path", [ROOT / "template.yaml", *sorted((ROOT / "platform").glob("*.yaml"))])
def test_each_resource_of_the_templates_can_be_followed_by_another(path: Path) -> None:
    text = path.read_text("utf-8")
    template, before = TemplateText(text), parse(text)["Resources"]
    for name in before:
        template.insert_after([f"After{name}: {{Type: T}}"], "Resources", name)
    assert added(text, template.text) == [f"  After{name}: {{Type: T}}" for name in before]
    after = parse(template.text)["Resources"]
    assert [*after] == [each for name in before for each in (name, f"After{name}")]
    assert {name: after[name] for name in before} == before
