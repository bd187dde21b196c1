"""An application of two hundred tools: template.yaml with nested stacks, as `make new-tool` writes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mcp_roundtrip_tools.new_tool.plan import MAX_NAME
from mcp_roundtrip_tools.new_tool.stacks import add_stack, nested_template, render_entry_of_stack, render_head
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT

PLAIN_IN_A_STACK, WITH_TASKS_IN_A_STACK = 99, 45
"""How many tools a nested stack holds if each deployment is gradual."""

NAMES = [f"{number:03}".join(("tool_", "_x" * 20))[:MAX_NAME] for number in range(200)]


@dataclass(frozen=True)
class ManyTools:
    """The templates by their paths in the project, and the names of the tools of each nested stack."""

    templates: dict[Path, str]
    tools: dict[Path, list[str]]

    @property
    def nested(self) -> list[Path]:
        return [*self.tools]


def two_hundred_tools() -> ManyTools:
    """Return the application. The tools of its second nested stack have tasks; all names are the longest."""
    return tools_in_stacks(
        {
            "first": (PLAIN_IN_A_STACK, False),
            "second": (WITH_TASKS_IN_A_STACK, True),
            "third": (len(NAMES) - PLAIN_IN_A_STACK - WITH_TASKS_IN_A_STACK, False),
        }
    )


def tools_in_stacks(stacks: Mapping[str, tuple[int, bool]]) -> ManyTools:
    """Return an application with nested stacks of so many tools, with or without tasks."""
    source = ROOT / "template.yaml"
    document, text = load(source), source.read_text("utf-8")
    head, names = render_head(document), iter(NAMES)
    templates, tools = {}, {}
    for stack, (count, tasks) in stacks.items():
        path = nested_template(stack)
        tools[path] = [*islice(names, count)]
        entries = (render_entry_of_stack(name, tasks=tasks) for name in tools[path])
        templates[path] = head + "\n".join(entries)
        text = add_stack(text, document, stack)
    return ManyTools({Path("template.yaml"): text, **templates}, tools)
