"""Run a feature for a client that opens with `initialize` and cannot be asked in the middle of a call.

Such a client could only be asked over a stream that is held open. So its questions take the fallbacks
(`server.channels`), with one exception: `elicit_url` ends the call with -32042 (2025-11-25,
client/elicitation "URL Elicitation Required Error") if the client declares URL elicitation, or if it is
unknown what it declares and no fallback reaches the user. The client calls again, and `done` tells whether
the interaction is complete.

Every call runs the function from its start, so a step that must not run twice cannot come before -32042.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.canonical import digest
from mcp_roundtrip.engine.channels import Channels
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.outcome import Failed, NeedsInput, Outcome
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import MissingClientCapability, ProtocolError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.journal import Journal, Kind
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol.capabilities import ELICITATION_URL, declares
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from mcp_roundtrip.protocol.request_validation import RequestMeta
from mcp_roundtrip.server.channels import (
    reaches_user,
    require_feature_capabilities,
    usable_channels,
)
from mcp_roundtrip.server.client_abilities import without_input_capabilities
from mcp_roundtrip.server.errors import client_error
from mcp_roundtrip.server.execution import host_services, new_run, run_pass
from mcp_roundtrip.server.model import FeatureCall, Reply, RequestContext
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.runner import (
    reply_to_pass,
    resume_parked,
    run_round,
    take_model_responses,
)
from mcp_roundtrip.server.unaskable import cannot_ask_error, lost_effects, too_late_error, unaskable_error

URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25, client/elicitation. Later versions have no such error, and no other meaning for its code."""


class Visits(Struct, frozen=True):
    """The URLs that the user may have visited before this call, by the keys of their questions.

    `flow_id`: the flow id of all passes of this call.
    `name`: identifies the visits in every call with the same arguments and answers.
    """

    keys: frozenset[str] = frozenset()
    flow_id: str | None = None
    name: str | None = None


def run_legacy_call(call: FeatureCall) -> Reply:
    """Run one call. Raises ProtocolError for a request that is refused before the function runs."""
    call = _with_usable_capabilities(call)
    if call.params.is_in_app:
        return run_round(call, LegacyRound)
    channels = partial(usable_channels, call)
    try:
        call = take_model_responses(call, channels)
    except ArgumentsError as error:
        return LegacyRound(call, _start_run(call, channels, Visits())).reply_for(Failed(error))
    resumed = resume_parked(call, channels, LegacyRound)
    if isinstance(resumed, Reply):
        return resumed
    return _run_passes(resumed, channels)


def _run_passes(call: FeatureCall, channels: Callable[[], Channels]) -> Reply:
    visits = Visits()
    while True:
        run = _start_run(call, channels, visits)
        this_round = LegacyRound(call, run, visits=visits)
        try:
            require_feature_capabilities(call, channels())
        except MissingClientCapability as error:
            return this_round.unaskable_reply(error)
        outcome = run_pass(call, run)
        unvisited = this_round.unvisited_urls(outcome)
        if not unvisited or not isinstance(outcome, NeedsInput):
            return reply_to_pass(this_round, outcome)
        # A second pass asks `done` of each question whether its interaction is complete.
        name = visits.name or _visits_name(call, outcome.journal)
        visits = Visits(visits.keys | unvisited, outcome.journal.flow_id, name)


# -- before the pass ----------------------------------------------------------------------------------------


def _with_usable_capabilities(call: FeatureCall) -> FeatureCall:
    """Remove the capabilities that the client cannot use during a call: all but URL elicitation."""
    meta = call.context.request.meta
    adapted = replace(call, context=without_input_capabilities(call.context), follows_state=False)
    if _takes_urls(meta) or (_may_take_urls(meta) and not reaches_user(usable_channels(adapted))):
        return replace(adapted, context=_with_urls(adapted.context))
    return adapted


def _takes_urls(meta: RequestMeta) -> bool:
    return meta.protocol_version == LEGACY_VERSION and declares(meta.capabilities, ELICITATION_URL)


def _may_take_urls(meta: RequestMeta) -> bool:
    return meta.protocol_version == LEGACY_VERSION and not meta.knows_capabilities


def _with_urls(context: RequestContext) -> RequestContext:
    meta = context.request.meta
    capabilities = {**meta.capabilities, "elicitation": {"url": {}}}
    return replace(context, request=replace(context.request, meta=replace(meta, capabilities=capabilities)))


def _start_run(call: FeatureCall, channels: Callable[[], Channels], visits: Visits) -> Run:
    flow_id = visits.flow_id or call.context.ports.random_bytes(16).hex()
    accepted = {key: {"action": "accept"} for key in visits.keys}
    inputs = ClientInputs(
        accepted,
        is_resumed=False,
        find_channels=channels,
        model_responses=call.params.model_responses,
        polls_urls=False,  # the client has not shown them yet
    )
    return new_run(call, host_services(call), Journal(flow_id), inputs)


def _visits_name(call: FeatureCall, journal: Journal) -> str:
    """Return a name that is equal in every such call; for anonymous callers, in this call only.

    Answers are part of it: what happens at the URL depends on them, and a model could change them later.
    """
    principal = caller_binding(call.context.principal)
    if principal is None:
        return journal.flow_id
    answers = [[entry.key, entry.value] for entry in journal.entries if entry.kind is Kind.ANSWER]
    identity = [principal, call.context.request.method, call.name, call.params.arguments, answers]
    return digest("mcp-rs/v1/legacy-run", identity, size=24)


# -- after the pass -----------------------------------------------------------------------------------------


class LegacyRound(Round, frozen=True):
    """A pass that has ended, for a client that cannot be asked during a call."""

    visits: Visits = Visits()

    def unvisited_urls(self, outcome: Outcome) -> frozenset[str]:
        """Return the keys of the URLs to try as visited in a second pass, if the pass waits for URLs only."""
        if not isinstance(outcome, NeedsInput) or outcome.channel != "client":
            return frozenset()
        keys = frozenset(outcome.requests)
        # A tool whose keys differ from pass to pass would never end.
        is_bounded = len(self.visits.keys) < self.call.context.ports.config.max_rounds
        is_useful = _are_urls(outcome.requests) and not keys <= self.visits.keys
        return keys if is_useful and is_bounded and not lost_effects(outcome.journal) else frozenset()

    def request_input(self, requests: Mapping[str, Mapping[str, Any]], journal: Journal) -> Reply:
        """Build the error that sends the user to URLs: the client cannot answer requests in this call."""
        if not _are_urls(requests):
            return self.error_reply(cannot_ask_error(self.call), "not_asked")
        if done := lost_effects(journal):
            self._record("asked_after_steps", asked=sorted(requests), after=done)
            return self.error_reply(too_late_error(self.call), "not_asked")
        name = self.visits.name or _visits_name(self.call, journal)
        elicitations = [
            {"elicitationId": digest("mcp-rs/v1/elicitation", [name, key], size=24), **request["params"]}
            for key, request in requests.items()
        ]
        self._record("url_elicitation_required", asked=sorted(requests))
        # Many clients show the message, and no data.
        pages = "".join(f"\n- {each['message']}: {each['url']}" for each in elicitations)
        text = f"The user has to open each link, and finish there:{pages}\nThen send this request again."
        return self.reply(ProtocolError(URL_ELICITATION_REQUIRED, text, {"elicitations": elicitations}), None)

    def reply_for_exception(self, error: BaseException) -> Reply:
        """Build the reply for an exception; a question that cannot be asked is an error for the model."""
        failure = client_error(self.call, error)
        if isinstance(failure.error, MissingClientCapability):
            return self.unaskable_reply(failure.error)
        return self.error_reply(failure.error, failure.outcome)

    def unaskable_reply(self, error: MissingClientCapability) -> Reply:
        """Build the reply that quotes the questions, or names the capabilities, which the client lacks."""
        asks_model = "model" in self.run.inputs.channels.fallbacks
        return self.error_reply(unaskable_error(self.call, error, asks_model=asks_model), "not_asked")

    def _record(self, event: str, **fields: Any) -> None:
        self.call.context.ports.observer.record(event, **self.call.log_identity, **fields)


def _are_urls(requests: Mapping[str, Mapping[str, Any]]) -> bool:
    return all(
        request["method"] == "elicitation/create" and request["params"]["mode"] == "url"
        for request in requests.values()
    )
