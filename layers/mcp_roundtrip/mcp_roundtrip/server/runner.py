"""Run one round of a feature: open the state, run the function once against the journal, and reply."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.outcome import Checkpointed, Failed, NeedsInput, Outcome
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
    if resumed.feature.task == "required":
        from mcp_roundtrip.server.task_creation import require_room  # few tools require a task

        require_room(resumed, this_round.run)
    try:
        return reply_to_pass(this_round, run_pass(resumed, this_round.run))
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


def resume_parked(
    call: FeatureCall, find_channels: Callable[[], Channels], make_round: type[Round]
) -> Reply | FeatureCall:
    """Continue the parked call that this one repeats, and reply; or return the call, which can run.

    Only calls that may be parked read the table. Raises ProtocolError if it is not available.
    """
    if call.params.request_state is not None or call.feature.parameters.context_parameter is None:
        return call
    if not call.context.ports.config.has_task_table:
        return call
    from mcp_roundtrip.server.channels import plan_of  # few calls get here

    if not plan_of(call).parks:
        return call
    from mcp_roundtrip.server.parked_calls import resume  # most calls cannot be parked

    return resume(call, find_channels(), make_round) or call


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
