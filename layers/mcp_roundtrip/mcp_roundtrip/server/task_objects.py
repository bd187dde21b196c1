"""The objects of the tasks extension: Task and DetailedTask (SEP-2663)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.question_page_links import question_page_url

POLL_INTERVAL_MS: Final = 1_000
"""The `pollIntervalMs` of every task."""


def task_members(task: Task, audience: Callable[[], str] | None = None) -> dict[str, Any]:
    """Return the members of a Task object.

    `audience` returns the URI of the endpoint. With it, `statusMessage` has the link to questions that the
    client cannot show.
    """
    members: dict[str, Any] = {
        "taskId": task.task_id,
        "status": task.visible_status.value,
        "createdAt": _iso_timestamp(task.created_at_ms),
        "lastUpdatedAt": _iso_timestamp(task.updated_at_ms),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }
    message = task.message
    if audience is not None and task.waits_for_page:
        message = _question_message(question_page_url(audience(), task.link or ""))
    return members if message is None else {**members, "statusMessage": message}


def detailed_task_members(task: Task, audience: Callable[[], str]) -> dict[str, Any]:
    """Return the members of a DetailedTask: with its input requests, its result or its error."""
    members = task_members(task, audience)
    match task.visible_status:
        case Status.INPUT_REQUIRED:
            return {**members, "inputRequests": task.client_requests}
        case Status.COMPLETED:
            return {**members, "result": task.result}
        case Status.FAILED:
            return {**members, "error": task.error}
    return members


def _question_message(url: str) -> str:
    return f"The task has a question for the user, who answers it at {url}"


def _iso_timestamp(epoch_ms: int) -> str:
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
