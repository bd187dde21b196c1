"""Update a work item under Azure DevOps' custom rules, asking for the fields that a rule requires.

The dialogue is SEP-2322's "Real-World Example for Ephemeral Workflow". A prompt has a work item triaged.
"""

from typing import Literal

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Server, ToolError, one_of
from tracker import WorkItem, changes, check, find, find_bug, unresolved

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


@server.prompt(title="Triage a work item")
def triage(ctx: Context, workItemId: int | None = None) -> str:
    """Find out what is to be done about a work item.

    Args:
        workItemId: ID of the work item; you are asked for it otherwise.
    """
    item = which(ctx) if workItemId is None else find(workItemId)
    others = "\n".join(f"- {other.heading}" for other in unresolved() if other != item)
    return (
        f"Triage {item.heading} ({item.state}).\n\n"
        f"These are the other work items that are not resolved:\n{others}\n\n"
        "Say whether one of them has the same cause, and which of the two is then the duplicate; whether the "
        "title tells what somebody would see who has the problem, or else a better one; and which state it "
        "should have. Set nothing yet: propose calls of update_work_item, and wait for me to agree."
    )


def which(ctx: Context) -> WorkItem:
    """The work item the user picks."""
    items = {item.heading: item for item in unresolved()}
    return items[ctx.elicit("work_item", "Which work item is to be triaged?", one_of(items))]


@server.completion("triage", "workItemId")
def complete_id(value: str) -> list[str]:
    return [str(item.id) for item in unresolved() if str(item.id).startswith(value)]


handler = server.lambda_handler
