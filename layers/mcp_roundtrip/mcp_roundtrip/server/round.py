"""`tools/call`: one round of a tool, from its params to its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.deadline import Deadline
from mcp_roundtrip.engine.context import Context
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.host import HostServices, TaskOptions
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcome import (
    Checkpointed,
    Done,
    Failed,
    NeedsInput,
    Outcome,
    OwnershipLost,
    Sleeping,
    TaskRequested,
)
from mcp_roundtrip.engine.replay import replay
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import (
    INVALID_PARAMS,
    DefinitionError,
    MissingClientCapability,
    ProtocolError,
    StateRejected,
    ToolError,
)
from mcp_roundtrip.internal_errors import ArgumentsError, KeyServiceError, StateTooLarge
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal, caller_binding, user_binding
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS, missing_capabilities
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import ValidRequest
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.invocation import DRIFT_REMEDY, Invocation
from mcp_roundtrip.state.claims import Binding, OpenState

if TYPE_CHECKING:
    from mcp_roundtrip.server.feature import Feature
    from mcp_roundtrip.server.model import ServerOptions

INVALID_STATE: Final = "Invalid or expired requestState"
"""The whole answer to every state that is refused: why it was refused is in the log."""

CLIENT_ROUNDS: Final = 10
"""Most clients give up a call after so many."""

LARGE_STATE: Final = 16_384
"""Characters from which on a state is worth a warning: it travels twice in every round."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A result, the notifications that precede it, and what to say about it in the log."""

    result: Mapping[str, Any]
    notifications: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One round of one feature. `name` is what the request calls it: a resource's is the URI."""

    feature: Feature
    name: str
    call_params: CallParams
    route: ValidRequest
    principal: Principal | None
    ports: Ports
    invocation: Invocation
    options: ServerOptions

    @property
    def server_info(self) -> Mapping[str, Any]:
        """What the results of the call name as the server."""
        return self.options.info_for(self.invocation)

    def answer(self) -> Reply:
        """Run the round. Raises ProtocolError for what becomes a JSON-RPC error."""
        required = missing_capabilities(self.route.meta.capabilities, self.feature.requires)
        if required:
            needed_by = f"The {self.feature.kind} {self.feature.name!r}"
            raise MissingClientCapability(required, needed_by=needed_by)
        opened = self._open()
        run = self._run(opened)
        self.ports.observer.tag(flow=run.history.journal.flow_id)
        try:
            self._compare_with_catalog()
            arguments = self.feature.parameters.validate(self.call_params.arguments)
        except ArgumentsError as error:
            return self.told(error, "arguments_refused")
        except DefinitionError as error:
            self.ports.observer.failure("definition_failed", error, **self.named)
            raise internal_error(self.invocation.correlation_id) from error
        if self.feature.task == "required":
            from mcp_roundtrip.server.task_methods import check_task_limit  # most tools need no task

            check_task_limit(self)
        outcome = self.replay(arguments, run)
        told = {"round": _round(opened), **self.call_params.declined(), **run.notifications.log_fields()}
        try:
            reply = self._conclude(outcome, opened)
        except ProtocolError as failure:
            failure.notifications, failure.fields = tuple(run.notifications.messages), {**self.named, **told}
            raise
        return Reply(reply.result, tuple(run.notifications.messages), {**told, **reply.fields})

    # -- before the pass ----------------------------------------------------------------------------

    def _binding(self) -> Binding:
        return Binding(
            issuer=self.ports.config.issuer(),
            audience=self.ports.config.audience(),
            principal=caller_binding(self.principal),
            method=self.route.method,
            name=self.name,
            arguments=self.call_params.arguments,
        )

    def _open(self) -> OpenState | None:
        if self.call_params.state is None:
            return None
        try:
            return self.ports.states().open(self._binding(), self.call_params.state)
        except StateRejected as rejected:
            raise self._refused(rejected) from None
        except KeyServiceError as error:
            raise self.internal(error) from error

    def may_start_task(self) -> bool:
        """Whether the tool has tasks, and the client declared that it can follow them."""
        return self.feature.task is not None and not missing_capabilities(
            self.route.meta.capabilities, [TASKS]
        )

    def _run(self, opened: OpenState | None) -> Run:
        journal = Journal(self._new_flow_id()) if opened is None else self._journal(opened)
        meta, services = self.route.meta, self.host_services()
        if _round(opened) > self._rounds(journal) and not self.may_start_task():
            services = services.without_reserve()  # no later round could begin what this one puts off
        return Run(
            journal,
            self._client_inputs(None if opened is None else journal),
            services,
            NotificationBuffer(meta.progress_token, meta.log_level, self.invocation.max_response_bytes),
            TaskOptions(may_start=self.may_start_task(), is_offered=self.feature.task is not None),
        )

    def _new_flow_id(self) -> str:
        return self.ports.random_bytes(16).hex()

    def _client_inputs(self, journal: Journal | None) -> ClientInputs:
        """Return the responses that count; without a journal, the request carried no state."""
        received, capabilities = self.call_params.responses, self.route.meta.capabilities
        if journal is None:
            return ClientInputs(received, is_resumed=False, capabilities=capabilities)
        return ClientInputs(journal.responses_for(received), is_resumed=True, capabilities=capabilities)

    def _journal(self, opened: OpenState) -> Journal:
        try:
            return Journal.from_json(opened.payload)
        except StateRejected as rejected:
            raise self._refused(rejected) from None

    def _compare_with_catalog(self) -> None:
        """Say so when the front door lists another definition than this function has: one of them is old."""
        listed = self.invocation.forwarded.definition
        if listed is not None and listed != self.options.digest(self.feature):
            self.ports.observer.record("catalog_drift", **self.named, remedy=DRIFT_REMEDY)

    def host_services(self) -> HostServices:
        """Return the functions that its run calls outside of the engine."""
        ports, user = self.ports, user_binding(self.principal)
        return HostServices(
            Deadline(self.invocation.deadline_ms, ports.clock_ms),
            ports.clock,
            ports.random_bytes,
            lambda key, flow_id, expires_at: ports.links().sign(user, key, flow_id, expires_at),
            ports.pause_ms,
            self._step_failed,
            ports.pause_ms_async,
            lambda: self._binding().identity(),
        )

    def _step_failed(self, step: str, error: Exception, runs_again: bool) -> None:
        observer, fields = self.ports.observer, {**self.named, "step": step}
        if runs_again:
            observer.record("step_retried", **fields, error=type(error).__name__)
        else:
            observer.failure("step_failed", error, **fields)

    # -- the pass -----------------------------------------------------------------------------------

    def replay(self, arguments: dict[str, Any], run: Run) -> Outcome:
        """One pass over the tool's body."""
        self.ports.observer.redact(run.redactable_values)
        info = CallInfo(
            self.principal,
            self.route.meta.info,
            self.invocation.lambda_context,
            self.options.namespaced_requests,
            self.route.meta.trace,
        )
        if self.feature.parameters.is_async:
            from mcp_roundtrip.server.async_pass import async_pass  # asyncio takes 40 ms

            outcome = async_pass(self.feature, arguments, run, info)
        else:
            if self.feature.parameters.context_parameter is not None:
                arguments = {**arguments, self.feature.parameters.context_parameter: Context(run, info)}
            outcome = replay(self.feature.function, arguments, run)
        if run.inputs.is_resumed and isinstance(outcome, NeedsInput):
            from mcp_roundtrip.server.changed_questions import record_changed_questions  # for later rounds

            record_changed_questions(run, self.named, self.ports.observer)
        return outcome

    # -- after the pass -----------------------------------------------------------------------------

    def _conclude(self, outcome: Outcome, opened: OpenState | None) -> Reply:
        match outcome:
            case NeedsInput() | Checkpointed():
                return self._another_round(outcome, opened)
            case TaskRequested(journal, ttl_ms):
                return self.become_task(journal, ttl_ms)
            case Done() | Failed():
                return self.ended(outcome)
            case Sleeping() | OwnershipLost():
                raise AssertionError(f"{outcome} is a task's alone")

    def ended(self, outcome: Done | Failed) -> Reply:
        """What the call came to. Raises ProtocolError for what becomes a JSON-RPC error."""
        return self._done(outcome.value) if isinstance(outcome, Done) else self._failed(outcome.error)

    def become_task(self, journal: Journal, ttl_ms: int) -> Reply:
        """Carry the call on as a task. Raises ProtocolError."""
        from mcp_roundtrip.server.task_methods import become_task  # most calls never do

        return become_task(self, journal, ttl_ms)

    def _done(self, value: Any) -> Reply:
        try:
            result = self.feature.completed(self.server_info, value, is_retry=self.call_params.is_retry)
        except Exception as error:
            return self._failed(error)
        return self.reply(result, "complete")

    def _rounds(self, journal: Journal) -> int:
        """Rounds that only wait for a page are no questions, and may use up those that clients allow."""
        most = self.ports.config.max_rounds
        return min(most + journal.url_wait_rounds, max(most + 1, CLIENT_ROUNDS))

    def _another_round(self, outcome: NeedsInput | Checkpointed, opened: OpenState | None) -> Reply:
        if _round(opened) <= self._rounds(outcome.journal):
            requests = outcome.requests if isinstance(outcome, NeedsInput) else {}
            return self._input_required(requests, outcome.journal, opened)
        from mcp_roundtrip.server.unfinished import out_of_rounds  # most calls end before

        return out_of_rounds(self, outcome, _round(opened) - 1)

    def _input_required(
        self, requests: Mapping[str, Mapping[str, Any]], journal: Journal, opened: OpenState | None
    ) -> Reply:
        this_round = _round(opened)
        try:
            state = self.ports.states().seal(
                self._binding(),
                journal.to_json(),
                round=this_round,
                first_issued_at=None if opened is None else opened.first_issued_at,
            )
        except KeyServiceError as error:
            raise self.internal(error) from error
        except (StateRejected, StateTooLarge) as error:
            from mcp_roundtrip.server.unfinished import not_sealed  # as rare

            return not_sealed(self, error, requests, journal)
        if len(state) > LARGE_STATE:
            self.ports.observer.record("state_large", **self.named, characters=len(state))
        return self.reply(
            results.input_required(self.server_info, requests, state),
            "input_required" if requests else "checkpoint",
            asked=sorted(requests),
        )

    def _failed(self, error: BaseException) -> Reply:
        from mcp_roundtrip.server.errors import told_of  # most calls do not fail

        return told_of(self, error)

    def told(self, error: ToolError, outcome: str, **fields: Any) -> Reply:
        """Tell of an error in a result, where the feature's results can."""
        return self.reply(self.feature.refused(self.server_info, error), outcome, **fields)

    @property
    def named(self) -> dict[str, str]:
        """What it is called in the log: not by the URI, which may hold what no log should."""
        return {self.feature.kind: self.feature.name}

    def reply(self, result: Mapping[str, Any], outcome: str, **fields: Any) -> Reply:
        """A result, and what to say about it in the log."""
        return Reply(result, fields={**self.named, "outcome": outcome, **fields})

    def _refused(self, rejected: StateRejected) -> ProtocolError:
        self.ports.observer.record("state_refused", **self.named, reason=rejected.reason)
        return ProtocolError(INVALID_PARAMS, INVALID_STATE)

    def internal(self, error: Exception) -> ProtocolError:
        self.ports.observer.failure("state_unavailable", error, **self.named)
        return internal_error(self.invocation.correlation_id)


def _round(opened: OpenState | None) -> int:
    return 1 if opened is None else opened.round + 1


def internal_error(correlation_id: str) -> ProtocolError:
    """-32603 that names nothing but the place in the log."""
    return ProtocolError(INTERNAL_ERROR, f"Internal error. Quote {correlation_id} to the server's operator.")
