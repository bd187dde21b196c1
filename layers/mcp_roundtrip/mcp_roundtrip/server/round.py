"""One round of a feature: open the state, run the function once against the journal, build the reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcome import Checkpointed, Done, Failed, NeedsInput, Outcome, TaskRequested
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, StateRejected, ToolError
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.admission import require_feature_capabilities
from mcp_roundtrip.server.execution import host_services, new_run, run_pass
from mcp_roundtrip.server.model import FeatureCall, Reply

if TYPE_CHECKING:
    from mcp_roundtrip.server.errors import ClientError
    from mcp_roundtrip.state.claims import OpenState

INVALID_STATE: Final = "Invalid or expired requestState"
"""The only message for a refused state; the log has the reason."""

CLIENT_ROUNDS: Final = 10
"""Number of rounds after which most clients give up a call."""

LARGE_STATE: Final = 16_384
"""Characters from which a state is logged: it travels twice in every round."""


def run_round(call: FeatureCall) -> Reply:
    """Run one round. Raises ProtocolError for a request that is refused before the function runs."""
    require_feature_capabilities(call)
    opened = _open_state(call)
    run = _start_run(call, opened)
    return Round(call, run, opened).reply_for(run_pass(call, run))


# -- before the pass ----------------------------------------------------------------------------------------


def _open_state(call: FeatureCall) -> OpenState | None:
    state = call.params.request_state
    if state is None:
        return None
    try:
        return call.context.ports.state_codec().open(call.binding, state)
    except StateRejected as rejected:
        raise _invalid_state(call, rejected) from None
    except KeyServiceError as error:
        call.context.ports.observer.record_failure("state_unavailable", error, **call.log_identity)
        raise call.context.internal_error from error


def _read_journal(call: FeatureCall, opened: OpenState) -> Journal:
    try:
        return Journal.from_json(opened.payload)
    except StateRejected as rejected:
        raise _invalid_state(call, rejected) from None


def _invalid_state(call: FeatureCall, rejected: StateRejected) -> ProtocolError:
    call.context.ports.observer.record("state_refused", **call.log_identity, reason=rejected.reason)
    return ProtocolError(INVALID_PARAMS, INVALID_STATE)


def _start_run(call: FeatureCall, opened: OpenState | None) -> Run:
    host, responses = host_services(call), call.params.input_responses
    capabilities = call.context.request.meta.capabilities
    if opened is None:
        journal = Journal(call.context.ports.random_bytes(16).hex())
        return new_run(
            call, host, journal, ClientInputs(responses, is_resumed=False, capabilities=capabilities)
        )
    journal = _read_journal(call, opened)
    if opened.round >= _max_rounds(call, journal) and not call.may_start_task:
        host = host.without_reserve()  # no later round could run what this one puts off
    inputs = ClientInputs(journal.responses_for(responses), is_resumed=True, capabilities=capabilities)
    return new_run(call, host, journal, inputs)


def _max_rounds(call: FeatureCall, journal: Journal) -> int:
    """Return the limit of rounds; rounds that only wait for a URL may use up the clients' own limit."""
    limit = call.context.ports.config.max_rounds
    return min(limit + journal.url_wait_rounds, max(limit + 1, CLIENT_ROUNDS))


# -- after the pass -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """A round whose pass has ended. It builds the reply; `opened` is None in the first round of a flow."""

    call: FeatureCall
    run: Run
    opened: OpenState | None = None

    @property
    def number(self) -> int:
        """The number of this round, from 1."""
        return 1 if self.opened is None else self.opened.round + 1

    def reply_for(self, outcome: Outcome) -> Reply:
        """Build the reply."""
        match outcome:
            case Done(value):
                return self._complete(value)
            case Failed(error):
                return self.reply_for_exception(error)
            case NeedsInput(requests, journal):
                return self.request_input(requests, journal)
            case Checkpointed(journal):
                return self.request_input({}, journal)
            case TaskRequested(journal, ttl_ms):
                return self._start_task(journal, ttl_ms)
        raise AssertionError(f"{outcome} is possible in a task only")

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

    def _start_task(self, journal: Journal, ttl_ms: int) -> Reply:
        from mcp_roundtrip.server.task_methods import create_task  # most calls do not become a task

        task = create_task(self.call, journal, ttl_ms)
        if isinstance(task, Mapping):
            return self.reply(results.task(self.call.server_info, task), "task", task=task["taskId"])
        return self._client_error(task)

    def request_input(self, requests: Mapping[str, Mapping[str, Any]], journal: Journal) -> Reply:
        """Build the InputRequiredResult; without `requests` the client retries with the state only."""
        call, observer = self.call, self.call.context.ports.observer
        if self.number > _max_rounds(call, journal):
            return self._out_of_rounds(requests, journal)
        try:
            state = call.context.ports.state_codec().seal(
                call.binding,
                journal.to_json(),
                round=self.number,
                first_issued_at=None if self.opened is None else self.opened.first_issued_at,
            )
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
            return self._start_task(journal, TASK_TTL_MS)
        return self._client_error(too_many_rounds(self.call, requests, self.number - 1))
