"""Execute the function of a feature for one pass: in a round of a call, or for a worker."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.auth.principal import user_binding
from mcp_roundtrip.engine.channels import ClientInputs
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.deadline import Deadline
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.replay import Failed, NeedsInput, Outcome, replay
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.engine.services import RunServices, StepSpan, TaskOptions
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.server.invocation import CATALOG_DRIFT_REMEDY
from mcp_roundtrip.server.model import FeatureCall

if TYPE_CHECKING:
    from mcp_roundtrip.observing.tracer import Tracer


def new_run(
    call: FeatureCall,
    journal: Journal,
    inputs: ClientInputs,
    options: TaskOptions | None = None,
    notifications: NotificationBuffer | None = None,
    *,
    has_reserve: bool = True,
) -> Run:
    """Create the run of one pass.

    `options` are those of a stored call, `notifications` those of a task. `has_reserve`: whether the pass
    ends early enough for another one.
    """
    meta, max_bytes = call.context.request.meta, call.context.invocation.max_response_bytes
    services = run_services(call)
    return Run(
        journal,
        inputs,
        services if has_reserve else services.without_reserve(),
        notifications or NotificationBuffer(meta.progress_token, meta.log_level, max_bytes),
        options or TaskOptions(may_start=call.may_start_task, is_offered=call.feature.task is not None),
    )


def run_services(call: FeatureCall) -> RunServices:
    """Return what the engine needs from its host for this call."""
    ports, principal = call.context.ports, call.context.principal
    observer, identity = ports.observer, call.log_identity

    def step_failed(step: str, error: Exception, runs_again: bool) -> None:
        if runs_again:
            observer.record("step_retried", **identity, step=step, error=type(error).__name__)
        else:
            observer.record_failure("step_failed", error, **identity, step=step)

    return RunServices(
        Deadline(call.context.invocation.deadline_ms, ports.clock_ms, can_continue=call.can_continue),
        ports.clock,
        ports.random_bytes,
        lambda *link: ports.links().sign(user_binding(principal), *link),
        ports.pause_ms,
        step_failed,
        ports.pause_ms_async,
        lambda: call.binding.identity(),
        None if ports.tracer is None else _step_spans(ports.tracer),
    )


def _step_spans(tracer: Tracer) -> StepSpan:
    from mcp_roundtrip.server.spans import step_span  # off by default

    return partial(step_span, tracer)


def run_pass(call: FeatureCall, run: Run) -> Outcome:
    """Run the function once, inside the hooks of the server. Raises ProtocolError for a broken feature."""
    if (tracer := call.context.ports.tracer) is None:
        return _run_pass(call, run)
    from mcp_roundtrip.server.spans import traced_pass  # off by default

    return traced_pass(tracer, call, run, _run_pass)


def _run_pass(call: FeatureCall, run: Run) -> Outcome:
    flow_id = run.history.journal.flow_id
    if (operation := call.context.invocation.operation) is not None:
        operation.begin(call, flow_id, run)
    call.context.tag(flow=flow_id)
    if call.options.hooks:
        from mcp_roundtrip.server.hooks import run_with_hooks  # the module of the hooks has imported it

        return run_with_hooks(call, run, _run_function)
    return _run_function(call, run)


def _run_function(call: FeatureCall, run: Run) -> Outcome:
    """Validate the arguments and run the function once. Raises ProtocolError if the feature is broken."""
    feature, observer = call.feature, call.context.ports.observer
    try:
        arguments = _validate_arguments(call)
    except ArgumentsError as error:
        return Failed(error)
    observer.redact(run.redactable_values)
    if feature.parameters.is_async:
        from mcp_roundtrip.server.async_pass import run_async_pass  # asyncio takes 40 ms

        outcome = run_async_pass(feature, arguments, run, _call_info(call))
    else:
        if (parameter := feature.parameters.context_parameter) is not None:
            from mcp_roundtrip.engine.context import Context  # the author's module has imported it

            arguments = {**arguments, parameter: Context(run, _call_info(call))}
        outcome = replay(feature.function, arguments, run)
    if run.requests.refused or isinstance(outcome, NeedsInput):
        _log_questions(call, run)
    return outcome


def _validate_arguments(call: FeatureCall) -> dict[str, Any]:
    """Return the typed arguments. Raises ArgumentsError, or ProtocolError if the feature is broken."""
    _log_catalog_drift(call)
    try:
        return call.feature.parameters.validate(call.params.arguments)
    except DefinitionError as error:
        call.context.ports.observer.record_failure("definition_failed", error, **call.log_identity)
        raise call.context.internal_error from error


def _call_info(call: FeatureCall) -> CallInfo:
    context, meta = call.context, call.context.request.meta
    return CallInfo(
        context.principal,
        meta.info,
        context.invocation.lambda_context,
        call.options.namespaced_requests,
        meta.trace,
    )


def _log_catalog_drift(call: FeatureCall) -> None:
    """Log that this function was deployed with another catalog than the front door."""
    ports, forwarded = call.context.ports, call.context.invocation.forwarded
    if forwarded.catalog_digest is None or (own := ports.config.catalog_digest()) is None:
        return
    if forwarded.catalog_digest != own:
        ports.observer.record("catalog_drift", **call.log_identity, remedy=CATALOG_DRIFT_REMEDY)


def _log_questions(call: FeatureCall, run: Run) -> None:
    """Log `answer_refused` and `question_changed` for the questions whose answers do not count.

    A changed price is a valid reason. A text with the current time, or the items of a set in any order,
    changes in every round, and no answer to it ever counts. The state holds fingerprints only, and a text may
    quote arguments, so the record has the key and which part changed. A question of a task is logged by the
    pass that asks it again, and not by further passes until it is answered.
    """
    observer, identity, logged = call.context.ports.observer, call.log_identity, run.tasks.outstanding_keys
    for key, reason in run.requests.refused.items():
        if key not in logged:
            observer.record("answer_refused", **identity, key=key, reason=reason)
    for key, changed in run.changed_questions().items():
        if key not in logged:
            observer.record("question_changed", **identity, key=key, changed=changed)
