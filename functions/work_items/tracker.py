"""The work items of `work_items.json`, and what may be done with them. Nothing is ever written back."""

import json
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip import ToolError

FIELDS = {"System.State": "State", "System.Title": "Title", "System.AssignedTo": "Assigned To"}
STATES = ("New", "Active", "Resolved", "Closed")


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A row of work_items.json."""

    id: int
    type: str
    title: str
    state: str

    @property
    def label(self) -> str:
        return f"{self.type} #{self.id}"

    @property
    def heading(self) -> str:
        return f"{self.label}: {self.title}"


WORK_ITEMS = {
    int(number): WorkItem(int(number), **row)
    for number, row in json.loads(Path(__file__).with_name("work_items.json").read_text("utf-8")).items()
}


def find(number: int) -> WorkItem:
    """The work item of that ID, or a ToolError that names those there are."""
    if number not in WORK_ITEMS:
        known = ", ".join(map(str, WORK_ITEMS))
        raise ToolError(f"There is no work item #{number}. The work items are: {known}.")
    return WORK_ITEMS[number]


def find_bug(number: int) -> WorkItem:
    """The bug of that ID."""
    item = find(number)
    if item.type != "Bug":
        raise ToolError(f"{item.label} is no bug: only bugs are resolved, and only as duplicates of bugs.")
    return item


def unresolved() -> list[WorkItem]:
    """The work items that are neither resolved nor closed, by ID."""
    return [item for _, item in sorted(WORK_ITEMS.items()) if item.state not in ("Resolved", "Closed")]


def check(fields: dict[str, str]) -> None:
    """Raise ToolError for fields or values that cannot be set."""
    unknown = fields.keys() - FIELDS.keys()
    if unknown or not fields:
        raise ToolError(f"Name at least one field, and none but {', '.join(FIELDS)}.")
    if fields.get("System.State", "New") not in STATES:
        raise ToolError(f"System.State is one of {', '.join(STATES)}.")


def changes(fields: dict[str, str], *more: str) -> str:
    """What was changed, as a sentence."""
    parts = [f"{FIELDS[name]} set to {value}" for name, value in fields.items()] + list(more)
    return f"{', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"{parts[0]}."
