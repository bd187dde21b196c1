"""Update a work item in Azure DevOps, asking for the fields that the project's custom rules require.

The dialogue is the "Real-World Example for Ephemeral Workflow" of SEP-2322. A prompt triages a work item.
"""

from typing import Literal

from pydantic import BaseModel, Field

from azure_devops import FIELDS, Unavailable, WorkItem, check, find, find_bug, unresolved, update
from mcp_roundtrip import Context, Retry, Server, ToolError, one_of

server = Server("work_items")

RETRY = Retry(attempts=3, delay_ms=500, on=(Unavailable,))


class Resolution(BaseModel):
    resolution: Literal["Fixed", "Won't Fix", "Duplicate", "By Design"] = Field(
        description="Resolution type for this bug"
    )


class DuplicateOf(BaseModel):
    # The SEP's form has the type "number"; multiple_of refuses fractions.
    duplicateOfId: float = Field(description="Work item ID of the original bug", multiple_of=1)


@server.tool
def update_work_item(ctx: Context, workItemId: int, fields: dict[str, str]) -> str:
    """Set fields of a work item. To resolve a bug, the user is asked how, and of which bug it is a duplicate.

    Args:
        workItemId: ID of the work item.
        fields: New values by field: System.State, System.Title or System.AssignedTo.
    """
    item = find(workItemId)
    check(fields)
    if fields.get("System.State") != "Resolved":
        ctx.step("update", update, item, fields, retry=RETRY)
        return f"{item.label} updated. {changes(fields)}"
    bug = find_bug(workItemId)
    # Rule 1: State "Resolved" requires a Resolution.
    question = f"Resolving {bug.label} requires a resolution. How was this bug resolved?"
    resolution = ctx.elicit("resolution", question, Resolution).resolution
    resolved = {**fields, "Custom.Resolution": resolution}
    if resolution != "Duplicate":
        ctx.step("update", update, bug, resolved, retry=RETRY)
        return f"{bug.label} resolved as {resolution}. {changes(fields)}"
    # Rule 2: Resolution "Duplicate" requires Duplicate Of.
    question = "Since this is a duplicate, which work item is the original?"
    original = find_bug(int(ctx.elicit("duplicate_of", question, DuplicateOf).duplicateOfId))
    if original.id == bug.id:
        raise ToolError(f"{bug.label} cannot be a duplicate of itself.")
    ctx.step("update", update, bug, resolved, original.id, retry=RETRY)
    report = changes(fields, "duplicate link created")
    return f"{bug.label} resolved as Duplicate of {original.label}. {report}"


def changes(fields: dict[str, str], *more: str) -> str:
    """Describe the changes in a sentence."""
    parts = [f"{FIELDS[name]} set to {value}" for name, value in fields.items()] + list(more)
    return f"{', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"{parts[0]}."


@server.prompt(title="Triage a work item")
def triage(ctx: Context, workItemId: int | None = None) -> str:
    """Decide what to do about a work item.

    Args:
        workItemId: ID of the work item; if it is left out, you are asked for it.
    """
    open_items = unresolved()
    item = which(ctx, open_items) if workItemId is None else find(workItemId)
    others = "\n".join(f"- {other.heading}" for other in open_items if other.id != item.id)
    return (
        f"Triage {item.heading} ({item.state}).\n\n"
        f"These other work items are not resolved:\n{others}\n\n"
        "Say whether one of them has the same cause, and which of the two is the duplicate. "
        "Say whether the title describes what a user with the problem sees, or propose a better one. "
        "Say which state the work item should have. "
        "Change nothing yet: propose calls of update_work_item, and wait for my agreement."
    )


def which(ctx: Context, items: list[WorkItem]) -> WorkItem:
    """Ask the user for a work item."""
    by_heading = {item.heading: item for item in items}
    return by_heading[ctx.elicit("work_item", "Which work item should be triaged?", one_of(by_heading))]


@server.completion("triage", "workItemId")
def complete_id(value: str) -> list[str]:
    return [str(item.id) for item in unresolved() if str(item.id).startswith(value)]


handler = server.lambda_handler
