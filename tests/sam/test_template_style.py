"""The templates are read by people: block style, short lines, a comment above each section."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.project import ROOT
from support.source_template import sections
from support.transformed_template import FRONT_DOOR, PLATFORM, TOOLS, WORKER_OF

TEMPLATE = ROOT / "template.yaml"
TOOLS_OF_AUTHORS = ROOT / "development/mcp_roundtrip_tools"
APPLICATION = TOOLS_OF_AUTHORS / "new/application/{{cookiecutter.project_name}}/template.yaml"
ENTRIES = sorted((TOOLS_OF_AUTHORS / "growth").glob("*.yaml"))
TEMPLATES = [TEMPLATE, *sorted((ROOT / "platform").glob("*.yaml")), APPLICATION, *ENTRIES]
"""The templates of this repository, of new applications, and what functions add to them."""

MAX_COLUMNS = 110
MAX_LINES = 480
MAX_PARAMETERS = 6
MAX_FUNCTION, MAX_FUNCTION_WITH_TASKS = 30, 85
"""Lines of a function with its role, and of a function with its worker, queue and role."""

EXAMPLES = {
    "ApprovalFunction",
    "ProvisionFunction",
    "SummarizeFunction",
    "WeatherFunction",
    "WorkItemsFunction",
}

every_template = pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)


def document_of(template: Path) -> yaml.MappingNode:
    text = re.sub(r"\{\{.*?\}\}", "value", template.read_text("utf-8"))  # of cookiecutter
    document = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(document, yaml.MappingNode)
    return document


def nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    yield node
    match node:
        case yaml.MappingNode():
            for key, value in node.value:
                yield from nodes(key)
                yield from nodes(value)
        case yaml.SequenceNode():
            for item in node.value:
                yield from nodes(item)


@every_template
def test_no_line_is_longer_than_110_columns(template: Path) -> None:
    lines = template.read_text("utf-8").splitlines()
    assert [line for line in lines if len(line) > MAX_COLUMNS] == []


@every_template
def test_only_lists_on_one_line_are_in_flow_style(template: Path) -> None:
    document = document_of(template)
    in_flow = [each for each in nodes(document) if getattr(each, "flow_style", False)]
    assert [str(each.start_mark) for each in in_flow if isinstance(each, yaml.MappingNode)] == []
    assert [str(each.start_mark) for each in in_flow if each.start_mark.line != each.end_mark.line] == []


@pytest.mark.parametrize("template", [TEMPLATE, PLATFORM], ids=lambda path: path.parent.name)
def test_every_section_begins_with_a_comment(template: Path) -> None:
    found = sections(template.read_text("utf-8"))
    assert len(found) >= 8
    assert [group[0] for group in found if not group[0].startswith("  # ")] == []


def test_the_template_is_short_and_grows_by_whole_functions() -> None:
    further = [tool for tool in TOOLS if tool not in EXAMPLES]
    growth = sum(MAX_FUNCTION_WITH_TASKS if tool in WORKER_OF else MAX_FUNCTION for tool in further)
    text = TEMPLATE.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_LINES + growth
    [parameters] = [value for key, value in document_of(TEMPLATE).value if key.value == "Parameters"]
    assert len(parameters.value) <= MAX_PARAMETERS


def test_a_function_has_few_lines() -> None:
    """Without variables and permissions for what it does."""
    own_variable = re.compile(r" {10}(#|(?!MCP_)[A-Z_]+: )")
    measured = {
        f"{words[1]}Function": sum(not own_variable.match(line) for line in group)
        for group in sections(TEMPLATE.read_text("utf-8"))
        if (words := re.match(r"  (\w+?)Function:$", "\n".join(group[1:]), re.MULTILINE))
        and "      Policies:" not in group
    }
    assert measured.keys() >= {FRONT_DOOR, "SummarizeFunction", "WeatherFunction", *WORKER_OF}
    for function, lines in measured.items():
        assert lines <= (MAX_FUNCTION_WITH_TASKS if function in WORKER_OF else MAX_FUNCTION), function
