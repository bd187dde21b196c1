"""Carry out a call: its rounds, and its task if it becomes one."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_GET, TASKS_UPDATE, TOOLS_CALL
from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.call.questions import Questions
from mcp_roundtrip_tools.call.server import McpServer
from mcp_roundtrip_tools.call.terminal import Terminal
from mcp_roundtrip_tools.client.connection import Result, next_round

MAX_ROUNDS: Final = 100

MIN_POLL_S: Final = 0.1
MAX_POLL_S: Final = 60.0
"""The bounds of the time between polls of a task, in seconds. Within them, its `pollIntervalMs` counts."""

ENDED: Final = ("completed", "failed", "cancelled")
"""The statuses of tasks that have ended."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls tools of a server, and follows tasks. `sleep` takes seconds."""

    server: McpServer
    questions: Questions
    terminal: Terminal
    sleep: Callable[[float], None] = time.sleep

    def call(self, tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> Result:
        """Call a tool and return its result. Raises CallFailed."""
        params: Result
        params = first = {"name": tool["name"], "arguments": dict(arguments)}
        for _ in range(MAX_ROUNDS):
            result = self.server.request(TOOLS_CALL, params)
            if result.get("resultType") == "task":
                return self.follow(result)
            if result.get("resultType") != "input_required":
                return result
            requests = result.get("inputRequests") or {}
            if not requests:
                self.terminal.show("  The call takes longer than a request, and continues.", "dim")
            responses = self.questions.answer(requests)
            params = next_round(first, result, responses)
        raise CallFailed(Status.ERROR, f"{tool['name']} has not completed after {MAX_ROUNDS} rounds.")

    def follow(self, task: Result) -> Result:
        """Poll a task until it ends, and return its result. Raises CallFailed; Ctrl+C may cancel it."""
        task_id = task["taskId"]
        self.terminal.show(f"Task {task_id}. Ctrl+C stops waiting for it.", "dim")
        try:
            return self._poll(task_id)
        except KeyboardInterrupt:
            return self._leave(task_id)

    def _poll(self, task_id: str) -> Result:
        shown, answered = "", dict[str, Any]()
        while True:
            task = self.server.request(TASKS_GET, {"taskId": task_id})
            status = task["status"]
            # The message of a task that has ended is that of its last step.
            message = "" if status in ENDED else task.get("statusMessage", "")
            line = f"{status.replace('_', ' ')}{f': {message}' if message else ''}"
            if line != shown:
                self.terminal.show(f"  {line}", "dim")
                shown = line
            if status in ENDED:
                return _result_of(task)
            # Until a worker has taken the answers, polls show the same questions, also beside new ones.
            asked = task.get("inputRequests") or {}
            if requests := {key: each for key, each in asked.items() if answered.get(key) != each}:
                answered |= requests
                responses = self.questions.answer(requests)
                self.server.request(TASKS_UPDATE, {"taskId": task_id, "inputResponses": responses})
            else:
                poll_ms = 1_000 if task.get("pollIntervalMs") is None else task["pollIntervalMs"]
                self.sleep(min(max(poll_ms / 1_000, MIN_POLL_S), MAX_POLL_S))

    def _leave(self, task_id: str) -> Result:
        """Cancel the task if the user wants that. Raises CallFailed."""
        self.terminal.show()
        if self.terminal.is_interactive and self._wants_to_cancel():
            self.server.request(TASKS_CANCEL, {"taskId": task_id})
            raise CallFailed(Status.INTERRUPTED, f"Task {task_id} is cancelled.")
        raise CallFailed(
            Status.INTERRUPTED,
            f"Task {task_id} continues. To follow it, pass TASK={task_id} (--task) instead of TOOL.",
        )

    def _wants_to_cancel(self) -> bool:
        try:
            return self.terminal.ask("Cancel the task? [y/N] > ").strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False


def _result_of(task: Mapping[str, Any]) -> Result:
    """Return the result of a task that has ended. Raises CallFailed."""
    match task:
        case {"status": "completed", "result": dict(result)}:
            return result
        case {"status": "completed"}:
            problem = "The task completed without a result."
        case {"status": "failed"}:
            error = task.get("error") or {}
            problem = f"The task failed: {error.get('message', '')} ({error.get('code', '')})."
        case _:
            problem = "The task was cancelled."
    raise CallFailed(Status.ERROR, problem)
