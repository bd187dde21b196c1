"""The entry of a new tool in template.yaml, as text, so that the template keeps its comments and its layout.

The entry refers to what the template has for all functions and changes nothing else. The logical ids of its
resources have a common prefix: `FindOrders` for `find_orders`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.model import TemplateError

RESOURCES = ("Function", "Role", "WorkerFunction", "Tasks", "TasksAlarm")
"""What the logical ids of an entry's resources end with."""

_ENTRIES = {
    False: Path(__file__).with_name("tool.yaml"),
    True: Path(__file__).with_name("tool_with_tasks.yaml"),
}
"""The entries of a tool named new_tool, without and with tasks."""

_RESOURCES_SECTION = re.compile(r"^Resources:.*\n(?:(?:[ #].*)?\n)*", re.MULTILINE)
_BLANK_LINES_AND_COMMENTS = re.compile(r"(?:^(?:#.*)?\n)*\Z", re.MULTILINE)


def logical_id_prefix(name: str) -> str:
    """Return the prefix of the logical ids of a tool's resources."""
    return "".join(part.capitalize() for part in name.split("_"))


def find_conflict(document: Mapping[str, Any], name: str) -> str | None:
    """Return a logical id of the template that conflicts with a tool of this name, if any."""
    own = {logical_id_prefix(name) + suffix for suffix in RESOURCES}
    ids = (each for section in document.values() if isinstance(section, dict) for each in section)
    return next((each for each in ids if each in own), None)


def render_entry(name: str, *, tasks: bool) -> str:
    """Return the resources of a tool; with `tasks`, also its worker, its queue and the queue's alarm."""
    text = _ENTRIES[tasks].read_text("utf-8")
    return text.replace("NewTool", logical_id_prefix(name)).replace("new_tool", name)


def append_entry(text: str, entry: str) -> str:
    """Return the template's text with the entry at the end of its resources. Raises TemplateError."""
    text = text.removesuffix("\n") + "\n"
    found = _RESOURCES_SECTION.search(text)
    if found is None:
        raise TemplateError("it has no section Resources whose resources are indented")
    end = found.start() + len(_BLANK_LINES_AND_COMMENTS.sub("", found[0]))
    return f"{text[:end]}\n{entry}{text[end:]}"
