"""A task as its client uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_GET, TASKS_UPDATE
from mcp_roundtrip_testing.played_call import (
    PlayedCall,
    describe_questions,
    describe_result,
    describe_unasked_answers,
    warn_of_changes,
)
from mcp_roundtrip_testing.workers import Workers

__tracebackhide__ = True  # pytest shows the line of the test

MAX_TURNS: Final = 1_000
"""The largest number of workers and polls until a task must rest."""


@dataclass(frozen=True, slots=True, repr=False)
class PlayedTask(PlayedCall):
    """A task that waits for answers, sleeps, or has ended. `message` answers the last `tasks/get`."""

    task_id: str
    request: Callable[..., Mapping[str, Any]]
    workers: Workers
    message: Mapping[str, Any] = field(default_factory=dict)

    @property
    def detailed(self) -> Mapping[str, Any]:
        """The DetailedTask. Raises CallFailed with the JSON-RPC error if there was one."""
        if "result" not in self.message:
            self.fail(f"the task cannot be read: {self.describe_state()}")
        detailed: Mapping[str, Any] = self.message["result"]
        return detailed

    @property
    def status(self) -> str:
        """The TaskStatus. A task at rest that is "working" sleeps."""
        return str(self.detailed["status"])

    @property
    def status_message(self) -> str | None:
        """The `statusMessage`."""
        return self.detailed.get("statusMessage")

    @property
    def journal(self) -> Journal | None:
        """The journal in the table, without answers since the task waited; None for an unknown task."""
        return self.workers.table.journal(self.task_id)

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of the call that became the task. Raises CallFailed unless it has completed."""
        if self.status != "completed":
            self.fail(f"the task has no result: {self.describe_state()}")
        result: Mapping[str, Any] = self.detailed["result"]
        return result

    @property
    def error(self) -> Mapping[str, Any]:
        """The JSON-RPC error of a failed task. Raises CallFailed for other tasks."""
        if self.status != "failed":
            self.fail(f"the task has no JSON-RPC error: {self.describe_state()}")
        error: Mapping[str, Any] = self.detailed["error"]
        return error

    @property
    def asked(self) -> Mapping[str, Mapping[str, Any]]:
        """The outstanding questions by their key on the wire."""
        asked: Mapping[str, Mapping[str, Any]] = self.detailed.get("inputRequests", {})
        return asked

    def answer(self, /, **answers: Any) -> PlayedTask:
        """Answer questions as in `Round.answer`, and run the workers. Raises CallFailed for another key.

        A key is the author's or the key on the wire ("key~2" for a question that was asked again).
        """
        if not all(self._wire_key(key) in self.asked for key in answers):
            self.fail(f"{describe_unasked_answers(self.asked, answers)}; now {self.describe_state()}")
        return self.respond(self._responses(answers))

    def respond(self, responses: Mapping[str, Any]) -> PlayedTask:
        """Send `tasks/update` with raw `inputResponses`. Warns with QuestionChanged."""
        seen = len(self.workers.changed)
        after = self._after(TASKS_UPDATE, inputResponses=responses)
        changed = self.workers.changed[seen:]
        if changed and after.status == "input_required":
            before = {key.partition("~")[0]: request for key, request in self.asked.items()}
            now = {key.partition("~")[0]: request for key, request in after.asked.items()}
            warn_of_changes(changed, before, now)
        return after

    def cancel(self) -> PlayedTask:
        """Send `tasks/cancel`."""
        return self._after(TASKS_CANCEL)

    def wake(self) -> PlayedTask:
        """Advance the clock to the end of the task's sleep, if it sleeps, and poll."""
        self.workers.table.end_sleep(self.task_id)
        return self.poll()

    def poll(self) -> PlayedTask:
        """Run workers, also in place of lost ones, and poll until the task rests, or raise AssertionError."""
        table = self.workers.table
        for _ in range(MAX_TURNS):
            if self.workers.work():
                continue
            message = self.request(TASKS_GET, taskId=self.task_id)
            if table.dispatcher.sent:
                continue
            if "error" in message or table.is_at_rest(self.task_id):
                return replace(self, message=message)
            self.workers.pass_time(self.task_id)
        raise AssertionError(f"the task does not rest after {MAX_TURNS} workers and polls")

    def _after(self, method: str, **params: Any) -> PlayedTask:
        acknowledged = self.request(method, taskId=self.task_id, **params)
        if "error" in acknowledged:
            self.fail(f"{method} ended in the JSON-RPC error {acknowledged['error']}")
        return self.poll()

    @property
    def raised(self) -> BaseException | None:
        """The exception that ended the tool, if any. It is the cause of each CallFailed."""
        return self.workers.raised.get(self.task_id)

    def describe_state(self) -> str:
        """Return the state of the task for an error message."""
        if "result" not in self.message:
            return f"tasks/get ended in the JSON-RPC error {self.message.get('error')}"
        match self.status:
            case "completed":
                return describe_result(self.detailed["result"], self.raised)
            case "failed":
                return f"it failed with the JSON-RPC error {self.detailed['error']}"
            case "working":
                return "it sleeps: use `wake()`"
        return f"it asks {describe_questions(self.asked)}" if self.asked else f"it is {self.status}"
