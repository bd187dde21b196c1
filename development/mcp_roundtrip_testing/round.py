"""One round of a call, and the next steps of its client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.question_channels import Channel
from mcp_roundtrip_testing.played_call import (
    PlayedCall,
    describe_questions,
    describe_result,
    describe_unasked_answers,
    warn_of_changes,
)
from mcp_roundtrip_testing.played_task import PlayedTask
from mcp_roundtrip_testing.task_table import FakeClock

__tracebackhide__ = True  # pytest shows the line of the test

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
