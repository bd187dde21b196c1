"""Update a work item under Azure DevOps' custom rules, asking for the fields that a rule requires.

The dialogue is SEP-2322's "Real-World Example for Ephemeral Workflow". The sample's store is the file it
ships with: an update is checked against it and reported, and nothing is written back.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcp_roundtrip import Context, Server, ToolError
from pydantic import BaseModel, Field

server = Server("work_items")

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


WORK_ITEMS = {
    int(number): WorkItem(int(number), **row)
    for number, row in json.loads(Path(__file__).with_name("work_items.json").read_text("utf-8")).items()
}


class Resolution(BaseModel):
    resolution: Literal["Fixed", "Won't Fix", "Duplicate", "By Design"] = Field(
        description="Resolution type for this bug"
    )


class DuplicateOf(BaseModel):
    # The form says "number", as the SEP's does; a fraction is asked again.
    duplicateOfId: float = Field(description="Work item ID of the original bug", multiple_of=1)


@server.tool
def update_work_item(ctx: Context, workItemId: int, fields: dict[str, str]) -> str:
    """Set fields of a work item. Resolving a bug asks how, and for the original of a duplicate.

    Args:
        workItemId: ID of the work item.
        fields: New values by field: System.State, System.Title or System.AssignedTo.
    """
    item = find(workItemId)
    check(fields)
    changes = [f"{FIELDS[name]} set to {value}" for name, value in fields.items()]
    if fields.get("System.State") != "Resolved":
        return f"{item.label} updated. {sentence(changes)}"
    require_bug(item)
    # Rule 1: State "Resolved" requires a Resolution.
    resolution = ctx.elicit(
        "resolution", f"Resolving {item.label} requires a resolution. How was this bug resolved?", Resolution
    ).resolution
    if resolution != "Duplicate":
        return f"{item.label} resolved as {resolution}. {sentence(changes)}"
    # Rule 2: Resolution "Duplicate" requires Duplicate Of.
    answer = ctx.elicit(
        "duplicate_of", "Since this is a duplicate, which work item is the original?", DuplicateOf
    )
    original = find(int(answer.duplicateOfId))
    require_bug(original)
    if original == item:
        raise ToolError(f"{item.label} cannot be a duplicate of itself.")
    changes.append("duplicate link created")
    return f"{item.label} resolved as Duplicate of {original.label}. {sentence(changes)}"


def find(number: int) -> WorkItem:
    if number not in WORK_ITEMS:
        known = ", ".join(map(str, WORK_ITEMS))
        raise ToolError(f"There is no work item #{number}. The work items are: {known}.")
    return WORK_ITEMS[number]


def check(fields: dict[str, str]) -> None:
    unknown = fields.keys() - FIELDS.keys()
    if unknown or not fields:
        raise ToolError(f"Name at least one field, and none but {', '.join(FIELDS)}.")
    if fields.get("System.State", "New") not in STATES:
        raise ToolError(f"System.State is one of {', '.join(STATES)}.")


def require_bug(item: WorkItem) -> None:
    if item.type != "Bug":
        raise ToolError(f"{item.label} is no bug: only bugs are resolved, and only as duplicates of bugs.")


def sentence(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"{parts[0]}."


handler = server.lambda_handler
