"""One pass over the function of a feature for one call, and the reply to it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from mcp_roundtrip.auth.callers import user_binding
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.deadline import Deadline
from mcp_roundtrip.engine.journal import History, Journal, keys_of_steps
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcomes import Done, Failed, NeedsInput, Outcome, Suspended, run_function
from mcp_roundtrip.engine.pass_state import Run, RunServices, TaskOptions
from mcp_roundtrip.engine.question_channels import Channels, ClientInputs
from mcp_roundtrip.errors import DefinitionError, MissingClientCapability, ProtocolError, UsageError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.call_errors import ClientError, client_error, describe_repeated, unaskable_error
from mcp_roundtrip.server.hooks import run_with_hooks
from mcp_roundtrip.server.lambda_invocation import CATALOG_DRIFT_REMEDY
from mcp_roundtrip.server.request_types import FeatureCall, Reply, WireInputRequests
from mcp_roundtrip.state.claims import OpenState

# -- run ----------------------------------------------------------------------------------------------------


def channels_of(call: FeatureCall) -> Channels:
    return Channels(call.context.request.meta.capabilities, call.plan.fallbacks)


def parked_channels(call: FeatureCall) -> Channels:
    """Return the channels of a parked call, with an app or a page: any client may make the call again."""
    fallbacks = call.plan.fallbacks
    if {"app", "page"}.isdisjoint(fallbacks):
        fallbacks = (*fallbacks, "page")
    return Channels({}, fallbacks)


def task_channels(call: FeatureCall) -> Channels:
    """Return the channels of a task: no result can show an app, or instruct the model, while it runs."""
    usable = {"default", "page"} if call.context.serves_pages else {"default"}
    fallbacks = tuple(each for each in call.feature.channels if each in usable)
    return Channels(call.context.request.meta.capabilities, fallbacks)


def new_run(
    call: FeatureCall,
    journal: Journal,
    inputs: ClientInputs,
    options: TaskOptions | None = None,
    notifications: NotificationBuffer | None = None,
    *,
    is_last: bool = False,
) -> Run:
    """Create the run of one pass. `options`: of a stored call. `is_last`: no pass can follow it."""
    meta, max_bytes = call.context.request.meta, call.context.invocation.max_response_bytes
    return Run(
        History(journal),
        inputs,
        _services(call, is_last),
        notifications or NotificationBuffer(meta.progress_token, meta.log_level, max_bytes),
        options or TaskOptions(may_start=call.may_start_task, is_offered=call.feature.task is not None),
    )


def _services(call: FeatureCall, is_last: bool) -> RunServices:
    ports = call.context.ports

    def can_continue() -> bool:
        return not is_last and call.carrier_if_unfinished is not None

    def sign_link(key: str, flow_id: str, expires_at: int) -> str:
        return ports.links().sign(user_binding(call.context.principal), key, flow_id, expires_at)

    def on_step_failed(step: str, error: Exception, runs_again: bool) -> None:
        if runs_again:
            call.record("step_retried", step=step, error=type(error).__name__)
        else:
            call.record_failure("step_failed", error, step=step)

    return RunServices(
        deadline=Deadline(call.context.invocation.deadline_ms, ports.clock_ms, can_continue),
        clock=ports.clock,
        random_bytes=ports.random_bytes,
        sign_link=sign_link,
        pause_ms=ports.pause_ms,
        on_step_failed=on_step_failed,
        pause_ms_async=ports.pause_ms_async,
        call_identity=lambda: call.binding.identity(),
    )


def run_pass(call: FeatureCall, run: Run) -> Outcome:
    """Run the function once, inside the hooks of the server. Raises ProtocolError for a broken feature."""
    outcome: Outcome = call.context.invocation.spans.run_pass(call, run, _run_pass)
    return outcome


def _run_pass(call: FeatureCall, run: Run) -> Outcome:
    flow_id = run.history.journal.flow_id
    call.context.invocation.operation.begin(call, flow_id, run)
    call.context.tag(flow=flow_id)
    return run_with_hooks(call, run, _validate_and_run)


def _validate_and_run(call: FeatureCall, run: Run) -> Outcome:
    """Validate the arguments and run the function once. Raises ProtocolError if the feature is broken."""
    feature, signature = call.feature, call.feature.parameters.signature
    _log_catalog_drift(call)
    try:
        arguments = feature.parameters.validate(call.params.arguments)
    except DefinitionError as error:
        call.record_failure("definition_failed", error)
        raise call.context.internal_error from error
    except Exception as error:  # ArgumentsError, or what an author's validator raises
        return Failed(error)
    call.context.ports.observer.redact(run.redactable_values)
    contexts: dict[str, Callable[..., Any]] = {}
    if signature.context_parameter is not None and signature.context_type is not None:
        context, meta = call.context, call.context.request.meta
        info = CallInfo(
            principal=context.principal,
            client=meta.info,
            lambda_context=context.invocation.lambda_context,
            namespaced_requests=context.options.namespaced_requests,
            trace=meta.trace,
        )
        contexts = {signature.context_parameter: partial(signature.context_type, run, info)}
    if signature.is_async:
        from mcp_roundtrip.engine.async_pass import run_async_pass  # asyncio takes 40 ms

        outcome = run_async_pass(feature.function, arguments, run, contexts)
    else:
        arguments = {**arguments, **{name: make() for name, make in contexts.items()}}
        outcome = run_function(feature.function, arguments, run)
    if run.requests.refused or isinstance(outcome, NeedsInput):
        _log_questions(call, run)
    if run.raised_steps and isinstance(outcome, Suspended):
        call.record("step_runs_again", steps=run.raised_steps)
    if run.task.recorder is None and (unasked := run.unasked_responses()):
        call.record("answers_ignored", count=len(unasked))
    return outcome


def _log_catalog_drift(call: FeatureCall) -> None:
    forwarded = call.context.invocation.forwarded.catalog_digest
    if forwarded is not None and call.context.ports.catalog_digest() not in (None, forwarded):
        call.record("catalog_drift", remedy=CATALOG_DRIFT_REMEDY)


def _log_questions(call: FeatureCall, run: Run) -> None:
    """Log `answer_refused` and `question_changed` for the questions whose answers do not count.

    A text with the current time, or the items of a set, changes in every round, and no answer to it counts.
    The state holds fingerprints only, and a text may quote arguments, so the record has the key and which
    part changed. Of the passes of a task, the one that asks the question again logs it.
    """
    logged = run.task.outstanding_keys
    for key, reason in run.requests.refused.items():
        if key not in logged:
            call.record("answer_refused", key=key, reason=reason)
    for key, changed in run.changed_questions().items():
        if key not in logged:
            call.record("question_changed", key=key, changed=changed)


# -- reply --------------------------------------------------------------------------------------------------


def asked_through(channel: str, requests: WireInputRequests) -> dict[str, tuple[str, str]]:
    """Return the questions as `Reply.asked` has them."""
    return {key: (requests[key]["method"], channel) for key in sorted(requests)}


class Round(Struct, frozen=True):
    """One round of a call, which builds its reply. `opened`: the state of this flow that the client sent."""

    call: FeatureCall
    run: Run
    opened: OpenState | None = None

    @property
    def number(self) -> int:
        return 1 if self.opened is None else self.opened.round + 1

    def reply_for(self, outcome: Done | Failed) -> Reply:
        if isinstance(outcome, Failed):
            return self.reply_for_exception(outcome.error)
        call = self.call
        try:
            if isinstance(outcome.value, Coroutine):
                outcome.value.close()
                text = f"{call.feature.name} returned a coroutine; await it, in an `async def`"
                raise UsageError(text)
            result = call.feature.result(call, outcome.value)
        except Exception as error:
            return self.reply_for_exception(error)
        return self.reply(result, "complete")

    def reply(
        self,
        body: Mapping[str, Any] | ProtocolError,
        outcome: str | None,
        *,
        asked: Mapping[str, tuple[str, str]] | None = None,
        **fields: Any,
    ) -> Reply:
        """Build the reply from a result or an error, with the notifications and log fields of the round."""
        log_fields: dict[str, Any] = {**self.call.log_identity, "round": self.number}
        if declined := self.call.params.declined():
            log_fields["declined"] = declined
        log_fields |= self.run.notifications.log_fields()
        if asked is not None:
            log_fields["asked"] = list(asked)
        log_fields |= fields
        if not isinstance(body, ProtocolError):
            log_fields["outcome"] = outcome
        messages = tuple(self.run.notifications.messages)
        return Reply(body, messages, log_fields, asked=asked or {}, repeated=self.repeated)

    @property
    def repeated(self) -> str:
        """The sentence about the steps that a repeated call runs again."""
        return describe_repeated(keys_of_steps(self.run.history.entries()))

    def unfinished_reply(
        self, text: str, outcome: str, meta: Mapping[str, Any] | None = None, **fields: Any
    ) -> Reply:
        """Build the reply whose result is a text for the model, because the call is not finished."""
        body = results.tool_result(self.call.server_info, content=[results.text_content(text)])
        if meta:
            body = {**body, "_meta": {**body["_meta"], **meta}}
        return self.reply(body, outcome, **fields)

    def reply_for_exception(self, error: BaseException) -> Reply:
        return self.error_reply(client_error(self.call, error, self.repeated))

    def reply_without(self, error: MissingClientCapability) -> Reply:
        """Build the reply to a client without a capability. Raises the error for one that knows its code."""
        if self.call.context.takes_rounds:
            raise error
        return self.error_reply(unaskable_error(self.call, error))

    def error_reply(self, failure: ClientError) -> Reply:
        """Build the reply that reports an error, in a result where the feature's results can."""
        error = failure.error
        if isinstance(error, ProtocolError):
            return self.reply(error, failure.outcome)
        body = self.call.feature.error_body(self.call, error)
        return self.reply(body, failure.outcome)
