"""Update a work item under Azure DevOps' custom rules, asking for the fields that a rule requires.

The dialogue is SEP-2322's "Real-World Example for Ephemeral Workflow".
"""

from typing import Literal

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Server, ToolError
from tracker import changes, check, find, find_bug

server = Server("work_items")


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
    if fields.get("System.State") != "Resolved":
        return f"{item.label} updated. {changes(fields)}"
    find_bug(workItemId)
    # Rule 1: State "Resolved" requires a Resolution.
    question = f"Resolving {item.label} requires a resolution. How was this bug resolved?"
    resolution = ctx.elicit("resolution", question, Resolution).resolution
    if resolution != "Duplicate":
        return f"{item.label} resolved as {resolution}. {changes(fields)}"
    # Rule 2: Resolution "Duplicate" requires Duplicate Of.
    question = "Since this is a duplicate, which work item is the original?"
    original = find_bug(int(ctx.elicit("duplicate_of", question, DuplicateOf).duplicateOfId))
    if original == item:
        raise ToolError(f"{item.label} cannot be a duplicate of itself.")
    return (
        f"{item.label} resolved as Duplicate of {original.label}. {changes(fields, 'duplicate link created')}"
    )


handler = server.lambda_handler
