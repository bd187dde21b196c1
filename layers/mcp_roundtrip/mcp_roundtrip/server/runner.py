"""Run one round of a feature: open the state, run the function once against the journal, and reply."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.outcome import Checkpointed, Failed, NeedsInput, Outcome, TaskRequested
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ProtocolError, StateRejected
from mcp_roundtrip.internal_errors import ArgumentsError, FlowIsStored, KeyServiceError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.server.execution import host_services, new_run, run_pass
from mcp_roundtrip.server.model import FeatureCall, Reply
from mcp_roundtrip.server.round import Round, max_rounds
from mcp_roundtrip.server.tools import Tool

if TYPE_CHECKING:
    from mcp_roundtrip.engine.channels import Channels
    from mcp_roundtrip.state.claims import OpenState


def run_round(call: FeatureCall, make_round: type[Round] = Round) -> Reply:
    """Run one round. Raises ProtocolError for a request that is refused before the function runs."""
    channels = partial(_usable_channels, call)
    if call.feature.requires:
        from mcp_roundtrip.server.channels import require_feature_capabilities  # few features require any

        require_feature_capabilities(call, channels())
    try:
        call = take_model_responses(call, channels)
    except ArgumentsError as error:
        return make_round(call, _start_run(call, None, channels)).reply_for(Failed(error))
    resumed = resume_parked(call, channels, make_round)
    if isinstance(resumed, Reply):
        return resumed
    opened = _open_state(resumed)
    this_round = make_round(resumed, _start_run(resumed, opened, channels), opened)
    if opened is not None and (repeated := _reply_if_stored(this_round, channels)) is not None:
        return repeated
    limit = max_rounds(resumed, this_round.run.history.journal)
    resumed.reservation.is_last_round = this_round.number > limit
    if _needs_place(this_round):
        from mcp_roundtrip.server.reserved_place import reserve_place_or_refuse  # most calls need none

        reserve_place_or_refuse(resumed)
    try:
        return run_in_place(resumed, lambda: _run(this_round))
    except FlowIsStored:
        return _reply_of_flow(this_round, channels) or Reply(call.context.internal_error)


def _reply_if_stored(this_round: Round, find_channels: Callable[[], Channels]) -> Reply | None:
    """Return the reply of the task or the parked call as which the flow continues; None if there is none.

    Only tools that may become tasks read the table. Raises ProtocolError.
    """
    call = this_round.call
    if call.feature.task is None or not call.context.ports.config.has_task_table:
        return None
    return _reply_of_flow(this_round, find_channels)


def _reply_of_flow(this_round: Round, find_channels: Callable[[], Channels]) -> Reply | None:
    from mcp_roundtrip.server.repeated_round import reply_if_stored  # few tools become tasks

    return reply_if_stored(this_round, find_channels())


def _needs_place(this_round: Round) -> bool:
    """Return whether the round is certain to need a place, or becomes a task if it does not end the call."""
    call, journal = this_round.call, this_round.run.history.journal
    if call.feature.task == "required" or (call.reservation.is_last_round and call.may_start_task):
        return True
    if not journal.needs_place:
        return False
    from mcp_roundtrip.server.channels import plan_of  # few rounds need a place

    return call.may_start_task or plan_of(call).parks


def _run(this_round: Round) -> Reply:
    outcome = run_pass(this_round.call, this_round.run)
    if not isinstance(outcome, TaskRequested):
        return reply_to_pass(this_round, outcome)
    from mcp_roundtrip.server.task_or_rounds import start_task  # most calls do not become a task

    return start_task(
        this_round,
        outcome.journal,
        outcome.ttl_ms,
        continue_in_rounds=lambda call: _run(_next_pass(this_round, call, outcome.journal)),
    )


def _next_pass(this_round: Round, call: FeatureCall, journal: Journal) -> Round:
    """Return the round with another pass, for a call that has changed."""
    params, before = call.params, this_round.run
    journal = journal.without_new_questions()
    responses = journal.responses_for(params.input_responses)
    inputs = ClientInputs(responses, True, partial(_usable_channels, call), params.model_responses)
    run = new_run(call, host_services(call), journal, inputs, before.notifications)
    run.history.round_has_entries = before.history.round_has_entries
    return replace(this_round, call=call, run=run)


def _usable_channels(call: FeatureCall) -> Channels:
    from mcp_roundtrip.server.channels import usable_channels  # most calls do not ask

    return usable_channels(call)


def take_model_responses(call: FeatureCall, find_channels: Callable[[], Channels]) -> FeatureCall:
    """Separate the answers that a model passed on from the arguments of the tool. Raises ArgumentsError."""
    tool = call.feature
    if not isinstance(tool, Tool) or "model" not in tool.channels or "model" not in find_channels().fallbacks:
        return call
    from mcp_roundtrip.server.model_questions import take_responses  # few tools choose it

    return replace(call, params=take_responses(call.params))


def run_in_place(call: FeatureCall, run: Callable[[], Reply]) -> Reply:
    """Return what `run` returns, and release the call's place if no task has taken it."""
    try:
        return run()
    finally:
        if call.reservation.place is not None:
            from mcp_roundtrip.server.reserved_place import release_place  # few calls have one

            release_place(call)


def resume_parked(
    call: FeatureCall, find_channels: Callable[[], Channels], make_round: type[Round]
) -> Reply | FeatureCall:
    """Continue the parked call that this one repeats, and reply; or return the call, which can run.

    A call that is certain to be parked has a place among the open tasks of its caller then, or is refused.
    Only calls that may be parked read the table. Raises ProtocolError if it is not available.
    """
    if call.params.request_state is not None or call.feature.parameters.context_parameter is None:
        return call
    if not call.context.ports.config.has_task_table:
        return call
    from mcp_roundtrip.server.channels import is_always_parked, plan_of  # few calls get here

    if not plan_of(call).parks:
        return call
    from mcp_roundtrip.server.parked_calls import refuse_without_place, resume  # most calls cannot be parked

    channels = find_channels()
    reply = resume(call, channels, make_round)
    if reply is None and is_always_parked(call, channels):
        reply = refuse_without_place(call, channels, make_round)
    return reply or call


def reply_to_pass(this_round: Round, outcome: Outcome) -> Reply:
    """Build the reply to a pass that has ended, or present what it waits for."""
    if isinstance(outcome, NeedsInput | Checkpointed):
        from mcp_roundtrip.server.presentation import present  # most calls do not wait

        return present(this_round, outcome)
    return this_round.reply_for(outcome)


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
    from mcp_roundtrip.server.errors import invalid_state  # most states are valid

    return invalid_state(call, rejected)


def _start_run(call: FeatureCall, opened: OpenState | None, find_channels: Callable[[], Channels]) -> Run:
    host, params = host_services(call), call.params
    if opened is None:
        journal, responses = Journal(call.context.ports.random_bytes(16).hex()), params.input_responses
    else:
        journal = _read_journal(call, opened)
        responses = journal.responses_for(params.input_responses)
        if opened.round >= max_rounds(call, journal) and not call.may_start_task:
            host = host.without_reserve()  # no later round could run what this one puts off
    inputs = ClientInputs(responses, opened is not None, find_channels, params.model_responses)
    return new_run(call, host, journal, inputs)
