"""The templates are read by people: short, with a comment above each section."""

import re
from pathlib import Path

import pytest

from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT
from support.source_template import sections
from support.transformed_template import FRONT_DOOR, PLATFORM, TOOLS, WORKER_OF

TEMPLATE = ROOT / "template.yaml"
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
    assert len(load(TEMPLATE)["Parameters"]) <= MAX_PARAMETERS


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
