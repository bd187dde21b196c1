"""Run one round of a call: load its journal, run one pass, and reply; or save the journal, and ask.

`engine.question_channels` chooses the channel of a question among those that `call_plan` leaves.
The channel decides where the journal waits, the carrier, and what the result says, the presenter:

=======  ====================================================  ==========================================
channel  where the journal waits                               how the answer comes
=======  ====================================================  ==========================================
client   in the state (`state_carrier`)                        in the next round of the call
client   nowhere, before -32042                                to `done`, when the call is made again
app      in the task table (`parked_carrier`)                  through the answer tool (`tools`)
app      in the state, without a task table                    the same
page     in the task table                                     to `question_page`
model    nowhere; in the task table after a step               in an argument, when the call is made again
=======  ====================================================  ==========================================

A parked call asks in the way of the client that makes it again (`parked_carrier.ask`). Its steps are in
memory until its first pass ends, and `StoredCall.park` writes them. From then on, each is written before
the next line of the tool runs: `tasks.worker` runs the later passes (`stored_call_passes`), in the request
that makes the call again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcomes import Checkpointed, Done, Failed, NeedsInput, TaskRequested
from mcp_roundtrip.engine.question_channels import Channel, ClientInputs
from mcp_roundtrip.errors import MissingClientCapability, StateRejected
from mcp_roundtrip.internal_errors import ArgumentsError, FlowIsStored, StoreError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import ELICITATION_URL, declares
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from mcp_roundtrip.server import state_carrier
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.call_errors import (
    TASK_REQUESTS,
    asked_after_steps,
    invalid_state,
    out_of_time_error,
    too_many_rounds,
)
from mcp_roundtrip.server.call_plan import Carrier, carrier_of_questions
from mcp_roundtrip.server.pass_and_reply import Round, channels_of, new_run, run_pass
from mcp_roundtrip.server.request_types import FeatureCall, Reply
from mcp_roundtrip.server.tools import take_responses
from mcp_roundtrip.state.claims import OpenState

if TYPE_CHECKING:
    from mcp_roundtrip.server.parked_carrier import StoredCall


def run_call(call: FeatureCall) -> Reply:
    """Run one round of a call. Raises ProtocolError for one that is refused before the function runs."""
    try:
        return _run_call(call)
    except StoreError as error:
        raise call.context.table_unavailable(error, **call.log_identity) from error


def _run_call(call: FeatureCall) -> Reply:
    adapted = _adapt(call)
    if isinstance(adapted, Reply):
        return adapted
    this_round = _load(adapted)
    if isinstance(this_round, Reply):
        return this_round
    try:
        return _run_round(this_round)
    except FlowIsStored:  # a concurrent round has become a task, or was parked
        return _stored(adapted).resume_flow(this_round) or Reply(call.context.internal_error)


# -- adapt to the client ------------------------------------------------------------------------------------


def _adapt(call: FeatureCall) -> FeatureCall | Reply:
    """Return the call as its client can use it, or a refusal. Raises MissingClientCapability (-32021)."""
    if not (call.context.takes_rounds or call.params.is_in_app):
        call = _adapt_to_earlier_version(call)
    if call.feature.requires and not call.params.is_in_app:  # the call that asked was checked
        try:
            _check_required_capabilities(call)
        except MissingClientCapability as error:
            return _first_round(call).reply_without(error)
    if "model" in call.feature.channels and "model" in call.plan.fallbacks:  # most calls need no plan
        try:
            call = replace(call, params=take_responses(call.params))
        except ArgumentsError as error:
            return _first_round(call).reply_for(Failed(error))
    return call


def _adapt_to_earlier_version(call: FeatureCall) -> FeatureCall:
    """Remove what a client cannot use during a call: capabilities other than URLs, and members of rounds.

    A client that opens with `initialize` could only be asked in the middle of a call, over a stream that is
    held open. So questions take the fallbacks (`call_plan`), and a call that waits is parked,
    with its journal. One exception: `elicit_url` ends the call with -32042 if the client declares URL
    elicitation, or if it is unknown what it declares and no fallback reaches the user.
    """
    meta = call.context.request.meta
    params = replace(call.params, input_responses={}, request_state=None)
    adapted = replace(call, params=params, context=call.context.without_input_capabilities())
    reaches_user = not {"app", "page"}.isdisjoint(adapted.plan.fallbacks)
    takes_urls = declares(meta.capabilities, ELICITATION_URL) or not (meta.knows_capabilities or reaches_user)
    if takes_urls and meta.protocol_version == LEGACY_VERSION:
        context = adapted.context
        capabilities = {**context.request.meta.capabilities, "elicitation": {"url": {}}}
        return replace(adapted, context=context.with_capabilities(capabilities))
    return adapted


def _check_required_capabilities(call: FeatureCall) -> None:
    """Raise MissingClientCapability (-32021) for what neither the client nor a fallback can do."""
    feature, channels = call.feature, channels_of(call)
    required = [path for path in feature.requires if not channels.supports(path)]
    require_capabilities(call.context, required, f"The {feature.kind} {feature.name!r}")


# -- load ---------------------------------------------------------------------------------------------------


def _load(call: FeatureCall) -> Round | Reply:
    """Return the round with the journal of the call, or the reply of a call that continues in the table."""
    feature, params = call.feature, call.params
    if params.request_state is None:
        # A tool that asks nothing needs no plan. A code names a call that another client may have parked.
        may_be_parked = feature.asks and (call.plan.parks or _has_code(call))
        repeated = _stored(call).resume_repeated() if may_be_parked else None
        return repeated or _first_round(call)
    try:
        opened = state_carrier.open_state(call, params.request_state)
    except StateRejected as rejected:
        return _refuse_state(call, rejected)
    if (task_id := state_carrier.parked_task(opened, for_view=params.is_in_app)) is not None:
        return _stored(call).resume_named(task_id)
    journal = state_carrier.journal_of(call, opened)
    # The last round does not stop at a checkpoint, because no later round could run the rest.
    is_last = opened.round >= state_carrier.max_rounds(call, journal) and not call.may_start_task
    this_round = _round(call, journal, opened, is_last=is_last)
    may_be_stored = feature.task is not None and call.context.ports.settings.task_table is not None
    stored = _stored(call).resume_flow(this_round) if may_be_stored else None
    return stored or this_round


def _has_code(call: FeatureCall) -> bool:
    """Return whether the caller names a parked call by its code."""
    context = call.context
    return call.params.continuation_code is not None and context.principal is None and context.serves_pages


def _refuse_state(call: FeatureCall, rejected: StateRejected) -> Reply:
    """Return the reply to a view whose state is not valid. Raises ProtocolError for the state of a client."""
    error = invalid_state(call, rejected)
    if not call.params.is_in_app:
        raise error from None
    text = (
        "These questions can no longer be answered: they have expired, or they belong to another call or "
        "user. Ask the assistant to call the tool again."
    )
    log_fields = {**call.log_identity, "outcome": "state_refused"}
    return Reply(results.tool_error(call.server_info, text), log_fields=log_fields, reason=rejected.reason)


def _first_round(call: FeatureCall) -> Round:
    return _round(call, Journal(call.context.ports.random_bytes(16).hex()))


def _round(
    call: FeatureCall, journal: Journal, opened: OpenState | None = None, *, is_last: bool = False
) -> Round:
    params = call.params
    inputs = ClientInputs(
        {**params.input_responses, **journal.unused_responses},  # those of earlier rounds count first
        is_resumed=opened is not None,
        find_channels=lambda: channels_of(call),
        model_responses=params.model_responses,
        urls_may_be_visited=opened is None and not call.context.takes_rounds,
    )
    return Round(call, new_run(call, journal, inputs, is_last=is_last), opened)


def _stored(call: FeatureCall) -> StoredCall:
    from mcp_roundtrip.server.parked_carrier import StoredCall  # most calls are not stored

    return StoredCall(call)


# -- run ----------------------------------------------------------------------------------------------------


def _run_round(this_round: Round) -> Reply:
    call = this_round.call
    if call.feature.task == "required":
        _stored(call).require_room(this_round.run)
    outcome = run_pass(call, this_round.run)
    match outcome:
        case Done() | Failed():
            return this_round.reply_for(outcome)
        case NeedsInput():
            carrier = carrier_of_questions(
                call.plan,
                outcome.channel,
                has_effects=bool(outcome.journal.repeated_effects),
                takes_rounds=call.context.takes_rounds,
            )
            return _save(this_round, outcome, carrier)
        case Checkpointed(journal):
            channel: Channel = "app" if call.params.is_in_app else "client"
            return _save(this_round, NeedsInput({}, journal, channel), call.carrier_if_unfinished)
        case TaskRequested(journal, ttl_ms):
            return _stored(call).become_task(this_round, journal, ttl_ms)
    raise AssertionError(f"only a task ends a pass with {outcome}")


# -- save and present ---------------------------------------------------------------------------------------


def _save(this_round: Round, outcome: NeedsInput, carrier: Carrier | None) -> Reply:
    """Save the journal of a pass that is not finished, and ask; without requests, it was out of time."""
    from mcp_roundtrip.server import question_presenters  # most calls ask nothing

    call, journal = this_round.call, outcome.journal
    match carrier:
        case "state":
            state = _save_in_state(this_round, outcome)
            if isinstance(state, Reply):
                return state
            return question_presenters.ask_with_state(this_round, outcome, state)
        case "task":
            return _stored(call).become_task(this_round, journal)
        case "parked":
            return _stored(call).park(this_round, outcome)
        case "restart" if journal.repeated_effects:  # the next call runs from its start
            return this_round.error_reply(asked_after_steps(call, outcome.requests, journal))
        case "restart" if outcome.channel == "client":
            return question_presenters.ask_at_urls(this_round, outcome.requests, journal)
        case "restart":
            return question_presenters.ask_model(this_round, outcome.requests)
    return this_round.error_reply(out_of_time_error(call, journal))


def _save_in_state(this_round: Round, outcome: NeedsInput) -> str | Reply:
    """Return the state of a pass, or the reply of a call that has no rounds left or becomes a task."""
    call, requests = this_round.call, outcome.requests
    if outcome.channel != "app" and this_round.number > state_carrier.max_rounds(call, outcome.journal):
        if call.may_start_task and all(each["method"] in TASK_REQUESTS for each in requests.values()):
            return _stored(call).become_task(this_round, outcome.journal)
        return this_round.error_reply(too_many_rounds(call, requests, this_round.number - 1, this_round.run))
    return state_carrier.save(this_round, outcome)
