"""A round of a feature whose pass has ended, and the replies that it can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.engine.outcome import Done, Failed, Outcome, TaskRequested
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ProtocolError, StateRejected, ToolError
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.model import FeatureCall, Reply

if TYPE_CHECKING:
    from mcp_roundtrip.server.errors import ClientError
    from mcp_roundtrip.state.claims import OpenState
    from mcp_roundtrip.tasks.call_index import Flow
    from mcp_roundtrip.tasks.model import Task

CLIENT_ROUNDS: Final = 10
"""Number of rounds after which most clients give up a call."""

LARGE_STATE: Final = 16_384
"""Characters from which a state is logged: it travels twice in every round."""


def max_rounds(call: FeatureCall, journal: Journal) -> int:
    """Return the limit of rounds; rounds that only wait for a URL may use up the clients' own limit."""
    limit = call.context.ports.config.max_rounds
    return min(limit + journal.url_wait_rounds, max(limit + 1, CLIENT_ROUNDS))


class Round(Struct, frozen=True):
    """A round whose pass has ended. It builds the reply; `opened` is None in the first round of a flow."""

    call: FeatureCall
    run: Run
    opened: OpenState | None = None

    @property
    def number(self) -> int:
        """The number of this round, from 1."""
        return 1 if self.opened is None else self.opened.round + 1

    @property
    def flow(self) -> Flow | None:
        """The flow of which the client has a state; None in the first round."""
        if self.opened is None:
            return None
        from mcp_roundtrip.tasks.call_index import Flow  # few tools become tasks

        principal, flow_id = caller_binding(self.call.context.principal), self.run.history.journal.flow_id
        return Flow(principal, flow_id, self.opened.flow_ends_at)

    def reply_for(self, outcome: Outcome) -> Reply:
        """Build the reply to a pass that does not wait for anything."""
        match outcome:
            case Done(value):
                return self._complete(value)
            case Failed(error):
                return self.reply_for_exception(error)
            case TaskRequested(journal, ttl_ms):
                return self.start_task(journal, ttl_ms)
        raise AssertionError(f"{outcome} waits for something: `presentation` has its reply")

    def reply(self, body: Mapping[str, Any] | ProtocolError, outcome: str | None, **fields: Any) -> Reply:
        """Build the reply from a result or an error, with the notifications and log fields of the round."""
        declined = self.call.params.declined()
        log_fields: dict[str, Any] = {
            **self.call.log_identity,
            "round": self.number,
            **({"declined": declined} if declined else {}),
            **self.run.notifications.log_fields(),
            **fields,
        }
        if outcome is not None and not isinstance(body, ProtocolError):
            log_fields["outcome"] = outcome
        return Reply(body, tuple(self.run.notifications.messages), log_fields)

    def error_reply(self, error: ToolError | ProtocolError, outcome: str | None) -> Reply:
        """Build the reply that reports an error, in a result where the feature's results can."""
        if isinstance(error, ProtocolError):
            return self.reply(error, outcome)
        return self.reply(self.call.feature.error_body(self.call.server_info, error), outcome)

    def reply_for_exception(self, error: BaseException) -> Reply:
        """Build the reply for an exception of the feature, and log it."""
        from mcp_roundtrip.server.errors import client_error  # most calls do not fail

        return self._client_error(client_error(self.call, error))

    def _client_error(self, failure: ClientError) -> Reply:
        return self.error_reply(failure.error, failure.outcome)

    def _complete(self, value: Any) -> Reply:
        is_retry = self.call.params.is_retry
        try:
            result = self.call.feature.result(self.call.server_info, value, is_retry=is_retry)
        except Exception as error:
            return self.reply_for_exception(error)
        return self.reply(result, "complete")

    def start_task(self, journal: Journal, ttl_ms: int, parked: Task | None = None) -> Reply:
        """Build the reply of a call that becomes a task. `parked`: see `task_creation.create_task`."""
        from mcp_roundtrip.server.task_creation import create_task  # most calls do not become a task

        task = create_task(self.call, self.run, journal, ttl_ms, self.flow, parked)
        return self.reply_with_task(task, "task") if isinstance(task, Mapping) else self._client_error(task)

    def reply_with_task(self, task: Mapping[str, Any], outcome: str) -> Reply:
        """Build the CreateTaskResult from the members of a Task object."""
        body = results.task(self.call.server_info, task)
        return self.reply(body, outcome, task=task["taskId"], task_ttl_ms=task["ttlMs"])

    def seal(self, journal: Journal) -> str:
        """Return the state of the next round.

        Raises KeyServiceError, StateTooLarge, and StateRejected if the flow has expired.
        """
        return self.call.context.ports.state_codec().seal(
            self.call.binding,
            journal.to_json(),
            round=self.number,
            first_issued_at=None if self.opened is None else self.opened.first_issued_at,
        )

    def request_input(self, requests: Mapping[str, Mapping[str, Any]], journal: Journal) -> Reply:
        """Build the InputRequiredResult; without `requests` the client retries with the state only."""
        call, observer = self.call, self.call.context.ports.observer
        if self.number > max_rounds(call, journal):
            return self._out_of_rounds(requests, journal)
        try:
            state = self.seal(journal)
        except KeyServiceError as error:
            observer.record_failure("state_unavailable", error, **call.log_identity)
            return self.reply(call.context.internal_error, None)
        except (StateRejected, StateTooLarge) as error:
            from mcp_roundtrip.server.errors import unsealed_state_error  # most states can be sealed

            return self._client_error(unsealed_state_error(call, error, requests, journal))
        if len(state) > LARGE_STATE:
            observer.record("state_large", **call.log_identity, characters=len(state))
        result = results.input_required(call.server_info, requests, state)
        return self.reply(result, "input_required" if requests else "checkpoint", asked=sorted(requests))

    def _out_of_rounds(self, requests: Mapping[str, Mapping[str, Any]], journal: Journal) -> Reply:
        from mcp_roundtrip.engine.url_polling import TASK_TTL_MS
        from mcp_roundtrip.server.errors import TASK_REQUESTS, too_many_rounds  # most calls end before

        if self.call.may_start_task and all(each["method"] in TASK_REQUESTS for each in requests.values()):
            return self.start_task(journal, TASK_TTL_MS)
        return self._client_error(too_many_rounds(self.call, requests, self.number - 1, self.run))
