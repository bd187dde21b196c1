"""Run a feature for a client that opens with `initialize` and cannot be asked in the middle of a call.

Such a client could only be asked over a stream that is held open, or with a stored state. Without them:

- `elicit_url` ends the call with -32042 (2025-11-25, client/elicitation "URL Elicitation Required Error").
  The client calls again, and `done` tells whether the interaction is complete.
- Any other question is handled as the author chose: with an error that quotes it, with its default, or with
  an instruction to the model to ask the user (`server.legacy.model_questions`).

Every call runs the function from its start, so a step that must not run twice cannot come before a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_roundtrip.canonical import digest
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.journal import Journal, Kind
from mcp_roundtrip.engine.outcome import Failed, NeedsInput, Outcome
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import MissingClientCapability, ProtocolError, dotted_capabilities
from mcp_roundtrip.internal_errors import ArgumentsError, CallAborted
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import ELICITATION_URL, declares
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip.server.admission import require_feature_capabilities
from mcp_roundtrip.server.errors import client_error
from mcp_roundtrip.server.execution import host_services, new_run, run_pass
from mcp_roundtrip.server.legacy.model_questions import INPUT_RESPONSES, model_prompt, read_input_responses
from mcp_roundtrip.server.model import CallParams, FeatureCall, LegacyQuestions, Reply
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.tools import Tool

URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25, client/elicitation. Later versions have no such error, and no other meaning for its code."""

_INPUT_CAPABILITIES: Final = frozenset({"elicitation", "sampling", "roots"})

Elicitations = Mapping[str, Mapping[str, Any]]
"""The params of `elicitation/create` requests by key."""


@dataclass(frozen=True, slots=True)
class Visits:
    """The URLs that the user may have visited before this call, by the keys of their questions.

    `flow_id`: the flow id of all passes of this call.
    `name`: identifies the visits in every call with the same arguments and answers.
    """

    keys: frozenset[str] = frozenset()
    flow_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class LegacyRunner:
    """Runs features. `questions` is the choice for features that make none: prompts and resources."""

    questions: LegacyQuestions = "error"

    def __call__(self, call: FeatureCall) -> Reply:
        """Run one call. Raises ProtocolError for a request that is refused before the function runs."""
        choice = call.feature.legacy_questions if isinstance(call.feature, Tool) else self.questions
        asks_model = isinstance(call.feature, Tool) and choice == "model"
        visits = Visits()
        try:
            call = _adapt(call, asks_model)
        except ArgumentsError as error:
            return Round(call, _start_run(call, choice, visits)).reply_for(Failed(error))
        while True:
            run = _start_run(call, choice, visits)
            this_round = LegacyRound(call, run, asks_model=asks_model, visits=visits)
            try:
                require_feature_capabilities(call)
            except MissingClientCapability as error:
                return this_round.unaskable_reply(error)
            outcome = run_pass(call, run)
            unvisited = this_round.unvisited_urls(outcome)
            if not unvisited or not isinstance(outcome, NeedsInput):
                return this_round.reply_for(outcome)
            # A second pass asks `done` of each question whether its interaction is complete.
            name = visits.name or _visits_name(call, outcome.journal)
            visits = Visits(visits.keys | unvisited, outcome.journal.flow_id, name)


# -- before the pass ----------------------------------------------------------------------------------------


def _adapt(call: FeatureCall, asks_model: bool) -> FeatureCall:
    """Set the answers that a model passed on, and the usable capabilities. Raises ArgumentsError."""
    arguments, responses = dict(call.params.arguments), {}
    if asks_model:
        responses = read_input_responses(arguments.pop(INPUT_RESPONSES, {}))
    request = call.context.request
    meta = replace(request.meta, capabilities=_askable_capabilities(call, asks_model))
    context = replace(call.context, request=replace(request, meta=meta))
    return replace(call, params=CallParams(arguments, responses, None), context=context)


def _askable_capabilities(call: FeatureCall, asks_model: bool) -> dict[str, Any]:
    capabilities = call.context.request.meta.capabilities
    declared = {name: each for name, each in capabilities.items() if name not in _INPUT_CAPABILITIES}
    if isinstance(declared.get("extensions"), dict):
        extensions = declared["extensions"].items()
        declared["extensions"] = {name: each for name, each in extensions if name != TASKS_EXTENSION}
    form: dict[str, Any] = {"form": {}} if asks_model else {}
    url: dict[str, Any] = {"url": {}} if _supports_urls(call) else {}
    return {**declared, "elicitation": {**form, **url}} if form or url else declared


def _supports_urls(call: FeatureCall) -> bool:
    """Return whether the client declared URLs, or may have declared them."""
    meta = call.context.request.meta
    may_support = declares(meta.capabilities, ELICITATION_URL) or not meta.knows_capabilities
    return meta.protocol_version == LEGACY_VERSION and may_support


def _start_run(call: FeatureCall, choice: LegacyQuestions, visits: Visits) -> Run:
    flow_id = visits.flow_id or call.context.ports.random_bytes(16).hex()
    accepted = {key: {"action": "accept"} for key in visits.keys}
    host = host_services(call).without_reserve()  # no later round could run a step that is postponed
    inputs = ClientInputs(
        {**call.params.input_responses, **accepted},
        is_resumed=False,
        capabilities=call.context.request.meta.capabilities,
        may_use_defaults=choice == "default",
        relayed_by_model=choice == "model" and isinstance(call.feature, Tool),
        polls_urls=False,  # the client has not shown them yet
    )
    return new_run(call, host, Journal(flow_id), inputs)


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


@dataclass(frozen=True)
class LegacyRound(Round):
    """A pass that has ended, for a client that cannot be asked. `asks_model`: through the model it can."""

    asks_model: bool = False
    visits: Visits = Visits()

    def unvisited_urls(self, outcome: Outcome) -> frozenset[str]:
        """Return the keys of the URLs to try as visited in a second pass, if the pass waits for URLs only."""
        if not isinstance(outcome, NeedsInput) or not _is_elicitation_only(outcome.requests):
            return frozenset()
        keys = frozenset(outcome.requests)
        modes = {request["params"]["mode"] for request in outcome.requests.values()}
        # A tool whose keys differ from pass to pass would never end.
        is_bounded = len(self.visits.keys) < self.call.context.ports.config.max_rounds
        is_useful = modes == {"url"} and not keys <= self.visits.keys
        return keys if is_useful and is_bounded and not _nonrepeatable(outcome.journal) else frozenset()

    def request_input(self, requests: Mapping[str, Mapping[str, Any]], journal: Journal) -> Reply:
        """Build the reply for questions: the client cannot answer them in this call."""
        kind = self.call.feature.kind
        if not requests:
            return self.error_reply(CallAborted(_out_of_time_text(kind)), "out_of_time")
        if not _is_elicitation_only(requests):
            return self.error_reply(CallAborted(_cannot_ask_text(kind, [])), "not_asked")
        if done := _nonrepeatable(journal):
            self._record("asked_after_steps", after=done)
            return self.error_reply(CallAborted(_too_late_text(kind)), "not_asked")
        params = {key: request["params"] for key, request in requests.items()}
        forms = {key: each for key, each in params.items() if each["mode"] == "form"}
        # Forms before URLs: their answers are part of the name under which the visits are found again.
        return self._ask_through_model(forms) if forms else self._require_urls(params, journal)

    def reply_for_exception(self, error: BaseException) -> Reply:
        """Build the reply for an exception; a question that cannot be asked is an error for the model."""
        failure = client_error(self.call, error)
        if isinstance(failure.error, MissingClientCapability):
            return self.unaskable_reply(failure.error)
        return self.error_reply(failure.error, failure.outcome)

    def unaskable_reply(self, error: MissingClientCapability) -> Reply:
        """Build the reply that quotes the questions, or names the capabilities, which the client lacks."""
        kind = self.call.feature.kind
        text = _too_late_text(kind) if error.lost else _unaskable_text(kind, error)
        is_for_user = any(question.is_user_only() for question in error.questions.values())
        if self.asks_model and is_for_user and not error.lost:
            text += " Only the user may answer it: an answer that a model passes on does not count."
        return self.error_reply(CallAborted(text), "not_asked")

    def _ask_through_model(self, forms: Elicitations) -> Reply:
        content = [results.text_content(model_prompt(self.call.name, forms))]
        result = results.tool_result(self.call.server_info, content, {})
        return self.reply(result, "asked_through_model", asked=sorted(forms))

    def _require_urls(self, urls: Elicitations, journal: Journal) -> Reply:
        name = self.visits.name or _visits_name(self.call, journal)
        elicitations = [
            {"elicitationId": digest("mcp-rs/v1/elicitation", [name, key], size=24), **params}
            for key, params in urls.items()
        ]
        self._record("url_elicitation_required", asked=sorted(urls))
        text = "Open the URLs and finish what they ask for, then send this request again."
        return self.reply(ProtocolError(URL_ELICITATION_REQUIRED, text, {"elicitations": elicitations}), None)

    def _record(self, event: str, **fields: Any) -> None:
        self.call.context.ports.observer.record(event, **self.call.log_identity, **fields)


def _is_elicitation_only(requests: Mapping[str, Mapping[str, Any]]) -> bool:
    return all(request["method"] == "elicitation/create" for request in requests.values())


def _nonrepeatable(journal: Journal) -> list[str]:
    return [entry.key for entry in journal.entries if entry.kind.is_nonrepeatable]


# -- texts --------------------------------------------------------------------------------------------------

_ASKABLE: Final = f"A client that speaks MCP {PROTOCOL_VERSION} can"


def _unaskable_text(kind: str, error: MissingClientCapability) -> str:
    if error.questions:
        return _cannot_ask_text(kind, map(_quote, error.questions.values()))
    if TASKS_EXTENSION in error.required.get("extensions", {}):
        return f"This {kind} takes so long that it needs tasks, which this client cannot follow. {_ASKABLE}."
    needed = ", ".join(dotted_capabilities(error.required))
    return f"This {kind} needs a client with these capabilities: {needed}. {_ASKABLE} have them here."


def _cannot_ask_text(kind: str, questions: Iterable[str]) -> str:
    asked = "".join(f"\n- {question}" for question in questions)
    return f"This {kind} has to ask something that this client cannot be asked:{asked}\n{_ASKABLE} be asked."


def _quote(question: Any) -> str:
    params = question.params()
    parts = [params.get("message", question.method), params.get("url")]
    return " ".join(part for part in parts if part is not None)


def _too_late_text(kind: str) -> str:
    return (
        f"This {kind} asks a question after it has started its work, and it cannot resume with this client: "
        f"do not call it again. {_ASKABLE} be asked."
    )


def _out_of_time_text(kind: str) -> str:
    return f"This {kind} ran out of time, and cannot resume with this client. {_ASKABLE} wait for it."
