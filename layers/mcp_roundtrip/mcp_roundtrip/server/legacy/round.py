"""Questions to clients of the `initialize` era, which can be asked nothing in the middle of a call.

Asking them would take a stream that is held open, or a stored state. What is possible without:

- `elicit_url` ends the call with -32042 (2025-11-25, client/elicitation "URL Elicitation Required Error").
  The client calls again, and `done` says whether the interaction is over.
- Any other question is what the author chose: an error that says what would have been asked, its default, or
  a question that the model asks (`server.legacy.model_questions`).

Either way the call runs from its start each time, so nothing that must not happen twice may come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_roundtrip.canonical import digest
from mcp_roundtrip.engine.host import HostServices
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.journal import Journal, Kind
from mcp_roundtrip.errors import MissingClientCapability, ProtocolError, dotted_capabilities
from mcp_roundtrip.internal_errors import ArgumentsError, CallAborted
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import ELICITATION_URL, declares
from mcp_roundtrip.protocol.methods import LEGACY_VERSION, PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.legacy.model_questions import INPUT_RESPONSES, ask_the_user, read_input_responses
from mcp_roundtrip.server.round import Call, Reply
from mcp_roundtrip.server.tools import LegacyQuestions, Tool
from mcp_roundtrip.state.claims import OpenState

URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25, client/elicitation. Later versions have no such error, and no other meaning for its code."""

_ASKING: Final = frozenset({"elicitation", "sampling", "roots"})


class _ToVisit(Exception):
    """The run waits for these URLs, and has not looked yet whether somebody has been there."""

    def __init__(self, urls: Iterable[str], journal: Journal) -> None:
        self.urls = frozenset(urls)
        self.journal = journal


@dataclass(frozen=True, slots=True)
class LegacyCall(Call):
    """A call that begins and ends with its request.

    `choice` is that for features that make none of their own. `visited` are the keys of the URLs where the
    user may have been, `flow_id` is that of the passes before. `named_by` names the visits: it is the same in
    every call with the same arguments and answers.
    """

    choice: LegacyQuestions = "error"
    visited: frozenset[str] = frozenset()
    flow_id: str | None = None
    named_by: str | None = None

    def answer(self) -> Reply:
        """Run the call. Raises ProtocolError for what becomes a JSON-RPC error."""
        try:
            call = self._prepared()
        except ArgumentsError as error:
            return self.told(error, "arguments_refused")
        while True:
            try:
                return Call.answer(call)  # the class has slots, for which Python 3.13 has no super()
            except _ToVisit as pending:
                call = call._after_visits(pending)
            except MissingClientCapability as unaskable:
                return self.told(CallAborted(self._unaskable_text(unaskable)), "not_asked")

    # -- before the pass ----------------------------------------------------------------------------

    @property
    def _choice(self) -> LegacyQuestions:
        return self.feature.legacy_questions if isinstance(self.feature, Tool) else self.choice

    @property
    def _asks_through_model(self) -> bool:
        return isinstance(self.feature, Tool) and self._choice == "model"

    def _prepared(self) -> LegacyCall:
        """With the answers that a model passed on, and the capabilities for what can be asked."""
        arguments, answers = dict(self.call_params.arguments), {}
        if self._asks_through_model:
            answers = read_input_responses(arguments.pop(INPUT_RESPONSES, {}))
        meta = replace(self.route.meta, capabilities=self._capabilities())
        call_params = CallParams(arguments, answers, None)
        return replace(self, call_params=call_params, route=replace(self.route, meta=meta))

    def _capabilities(self) -> dict[str, Any]:
        declared = {
            name: member for name, member in self.route.meta.capabilities.items() if name not in _ASKING
        }
        if isinstance(declared.get("extensions"), dict):
            extensions = declared["extensions"].items()
            declared["extensions"] = {name: each for name, each in extensions if name != TASKS_EXTENSION}
        form: dict[str, Any] = {"form": {}} if self._asks_through_model else {}
        url: dict[str, Any] = {"url": {}} if self._can_be_sent_to_urls() else {}
        return {**declared, "elicitation": {**form, **url}} if form or url else declared

    def _can_be_sent_to_urls(self) -> bool:
        """What the client said to `initialize` is forgotten; what it says on the request is not overruled."""
        meta = self.route.meta
        is_known_not_to = "elicitation" in meta.capabilities and not declares(
            meta.capabilities, ELICITATION_URL
        )
        return meta.protocol_version == LEGACY_VERSION and not is_known_not_to

    def _new_flow_id(self) -> str:
        return Call._new_flow_id(self) if self.flow_id is None else self.flow_id

    def _client_inputs(self, journal: Journal | None) -> ClientInputs:
        return replace(
            Call._client_inputs(self, journal),
            takes_defaults=self._choice == "default",
            relayed_by_model=self._asks_through_model,
            polls_urls=False,  # the client has not shown them yet
        )

    def host_services(self) -> HostServices:
        """Return the services for a call that cannot be continued: its deadline has no reserve."""
        return Call.host_services(self).without_reserve()

    # -- after the pass -----------------------------------------------------------------------------

    def _input_required(
        self, requests: Mapping[str, Mapping[str, Any]], journal: Journal, opened: OpenState | None
    ) -> Reply:
        if not requests:
            return self.told(CallAborted(_out_of_time_text(self.feature.kind)), "out_of_time")
        if any(request["method"] != "elicitation/create" for request in requests.values()):
            return self.told(CallAborted(_cannot_ask(self.feature.kind, [])), "not_asked")
        done = [entry.key for entry in journal.entries if entry.kind.is_nonrepeatable]
        if done:
            self.ports.observer.record("asked_after_steps", **self.named, after=done)
            return self.told(CallAborted(_too_late_text(self.feature.kind)), "not_asked")
        params = {key: request["params"] for key, request in requests.items()}
        forms = {key: each for key, each in params.items() if each["mode"] == "form"}
        # Forms before URLs: their answers name the run, which a user who has been at a URL must find again.
        if forms:
            return self._asked_through_model(forms)
        raise self._to_visit(params, journal)

    def _to_visit(self, urls: Mapping[str, Mapping[str, Any]], journal: Journal) -> Exception:
        # A tool whose keys differ from pass to pass would never come to an end.
        if not urls.keys() <= self.visited and len(self.visited) < self.ports.config.max_rounds:
            return _ToVisit(urls, journal)
        elicitations = [
            {"elicitationId": digest("mcp-rs/v1/elicitation", [self.named_by, key], size=24), **params}
            for key, params in urls.items()
        ]
        self.ports.observer.record("url_elicitation_required", **self.named, asked=sorted(urls))
        text = "Open the URLs and finish what they ask for, then send this request again."
        return ProtocolError(URL_ELICITATION_REQUIRED, text, {"elicitations": elicitations})

    def _after_visits(self, pending: _ToVisit) -> LegacyCall:
        visited = self.visited | pending.urls
        accepted = {key: {"action": "accept"} for key in visited}
        call_params = replace(self.call_params, responses={**self.call_params.responses, **accepted})
        flow_id, named_by = pending.journal.flow_id, self.named_by or self._named_by(pending)
        return replace(self, call_params=call_params, visited=visited, flow_id=flow_id, named_by=named_by)

    def _named_by(self, pending: _ToVisit) -> str:
        """What names the visits in every call like this one; in this call alone for anonymous callers.

        Answers are part of it: what happens at the URL is about them, and a model could change them later.
        """
        principal = caller_binding(self.principal)
        if principal is None:
            return pending.journal.flow_id
        entries = pending.journal.entries
        answers = [[entry.key, entry.value] for entry in entries if entry.kind is Kind.ANSWER]
        named = [principal, self.route.method, self.name, self.call_params.arguments, answers]
        return digest("mcp-rs/v1/legacy-run", named, size=24)

    def _asked_through_model(self, forms: Mapping[str, Mapping[str, Any]]) -> Reply:
        content = [results.text_content(ask_the_user(self.name, forms))]
        return self.reply(
            results.tool_result(self.server_info, content, {}), "asked_through_model", asked=sorted(forms)
        )

    def _unaskable_text(self, unaskable: MissingClientCapability) -> str:
        if unaskable.lost:
            return _too_late_text(self.feature.kind)
        text = _unaskable_text(self.feature.kind, unaskable)
        if self._asks_through_model and any(each.is_user_only() for each in unaskable.questions.values()):
            return f"{text} Only the user may answer it: an answer that a model passes on does not count."
        return text


# -- texts ----------------------------------------------------------------------------------------------

_ASKABLE: Final = f"A client that speaks MCP {PROTOCOL_VERSION} can"


def _unaskable_text(kind: str, unaskable: MissingClientCapability) -> str:
    if unaskable.questions:
        return _cannot_ask(kind, map(_would_be_asked, unaskable.questions.values()))
    if TASKS_EXTENSION in unaskable.required.get("extensions", {}):
        return f"This {kind} takes so long that it needs tasks, which this client cannot follow. {_ASKABLE}."
    needed = ", ".join(dotted_capabilities(unaskable.required))
    return f"This {kind} needs a client with these capabilities: {needed}. {_ASKABLE} have them here."


def _cannot_ask(kind: str, questions: Iterable[str]) -> str:
    asked = "".join(f"\n- {question}" for question in questions)
    return f"This {kind} has to ask something that this client cannot be asked:{asked}\n{_ASKABLE} be asked."


def _would_be_asked(question: Any) -> str:
    params = question.params()
    parts = [params.get("message", question.method), params.get("url")]
    return " ".join(part for part in parts if part is not None)


def _too_late_text(kind: str) -> str:
    return (
        f"This {kind} asks something after it has begun its work, and with this client it could not go on "
        f"from there: do not call it again. {_ASKABLE} be asked."
    )


def _out_of_time_text(kind: str) -> str:
    return f"This {kind} ran out of time, and cannot go on later with this client. {_ASKABLE} wait for it."
