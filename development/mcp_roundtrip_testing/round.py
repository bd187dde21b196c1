"""One round of a call, the task that it may become, and the client's next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.question_channels import Channel
from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_GET, TASKS_UPDATE
from mcp_roundtrip_testing.played_call import (
    PlayedCall,
    describe_questions,
    describe_result,
    describe_unasked_answers,
    warn_of_changes,
)
from mcp_roundtrip_testing.task_table import FakeClock
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


CLIENT_PAUSE_S: Final = 1.0


class RoundSender(Protocol):
    """The client of a Round: its `Player`."""

    @property
    def clock(self) -> FakeClock: ...

    def send_round(
        self, method: str, params: Mapping[str, Any], responses: Mapping[str, Any] | None, state: str | None
    ) -> Round: ...

    def task(self, task_id: str) -> PlayedTask: ...


@dataclass(frozen=True, slots=True, repr=False)
class Round(PlayedCall):
    """The response to one request of a call.

    `notifications`: those of the rounds since the last one that the test has seen.
    `channels`: the channels through which the questions of the call were answered so far, in order.
    `log_fields`: the fields of `request_completed`. `shown`: the open questions of a released client's call.
    `continue_call`: continues such a call with more answers.
    """

    player: RoundSender
    method: str
    params: Mapping[str, Any]
    message: Mapping[str, Any]
    notifications: tuple[Mapping[str, Any], ...] = ()
    journal: Journal | None = None
    status: int = 200
    cause: BaseException | None = None
    changed: tuple[str, ...] = ()
    log_fields: Mapping[str, Any] = field(default_factory=dict)
    channels: tuple[Channel, ...] = ()
    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    continue_call: Callable[[Round, Mapping[str, Any]], Round] | None = None

    @property
    def outcome(self) -> str | None:
        """The `outcome` in the log."""
        return self.log_fields.get("outcome")

    @property
    def result(self) -> Mapping[str, Any]:
        """The result. Raises CallFailed for a JSON-RPC error."""
        if "result" not in self.message:
            self.fail(f"{self.method} has no result: {self.describe_state()}")
        result: Mapping[str, Any] = self.message["result"]
        return result

    @property
    def error(self) -> Mapping[str, Any]:
        """The JSON-RPC error. Raises CallFailed if there is none."""
        if "error" not in self.message:
            self.fail(f"{self.method} has no JSON-RPC error: {self.describe_state()}")
        error: Mapping[str, Any] = self.message["error"]
        return error

    @property
    def raised(self) -> BaseException | None:
        """The exception that ended the tool, if any. It is the cause of each CallFailed."""
        return self.cause

    @property
    def asked(self) -> Mapping[str, Mapping[str, Any]]:
        """The questions by key; empty if the call completed or the round is a checkpoint."""
        asked: Mapping[str, Mapping[str, Any]] = self.shown
        return asked or self.result.get("inputRequests", {})

    @property
    def state(self) -> str | None:
        """The `requestState`."""
        return self.result.get("requestState")

    @property
    def task(self) -> PlayedTask:
        """The task that the call became, after its workers have run until it rests. Raises CallFailed."""
        if self.result.get("resultType") != "task":
            self.fail(f"the call did not become a task: {self.describe_state()}")
        return self.player.task(self.result["taskId"])

    def answer(self, /, **answers: Any) -> Round:
        """Retry with answers by key: the content of a form (a dict, or the value of a single field),
        `DECLINE`, `CANCEL`, or a result for sampling and roots.

        Raises CallFailed for a key that is not asked. `respond` sends raw responses instead.
        """
        if self.continue_call is not None:
            return self.continue_call(self, answers)
        if self.state is None:
            self.fail(f"nothing was asked: {self.describe_state()}")
        if not answers.keys() <= self.asked.keys():
            self.fail(describe_unasked_answers(self.asked, answers))
        return self.respond(self._responses(answers)).followed()

    def followed(self) -> Round:
        """Retry checkpoints, and return the round after them. If one journals nothing, time passes."""
        played = self
        while played.is_checkpoint:
            before, played = played, join(played, played.respond())
            if played.is_checkpoint and played.journal == before.journal:
                self.player.clock.advance(CLIENT_PAUSE_S)
        return played

    @property
    def is_checkpoint(self) -> bool:
        """Whether the result is a checkpoint: `requestState` without questions."""
        result = self.message.get("result", {})
        return result.get("resultType") == "input_required" and not result["inputRequests"]

    def respond(self, responses: Mapping[str, Any] | None = None) -> Round:
        """Retry with raw `inputResponses`. Warns with QuestionChanged."""
        after = self.player.send_round(self.method, self.params, responses, self.state)
        if after.changed:
            warn_of_changes(after.changed, self.asked, after.asked)
        return replace(after, channels=(*self.channels, *(("client",) if responses else ())))

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The messages of a prompt."""
        messages: Sequence[Mapping[str, Any]] = self._completed("messages")["messages"]
        return messages

    @property
    def contents(self) -> Sequence[Mapping[str, Any]]:
        """The contents of a resource."""
        contents: Sequence[Mapping[str, Any]] = self._completed("contents")["contents"]
        return contents

    def describe_state(self) -> str:
        """Return the state of the call for an error message."""
        if "error" in self.message:
            return f"it ended in the JSON-RPC error {self.message['error']}"
        if self.shown:
            return f"it asks {describe_questions(self.shown)}"
        return describe_result(self.message["result"], self.raised)


def join(before: Round, after: Round) -> Round:
    """Return a later round, with the notifications of an earlier one before its own."""
    return replace(after, notifications=(*before.notifications, *after.notifications))
