"""Results that ask: how the questions of a call reach somebody who answers, and what a result says meanwhile.

client  the protocol's own input requests (SEP-2322); URLs in an error for clients that open with `initialize`
app     a form that the host shows in the conversation (MCP Apps, SEP-1865). The result is complete for the
        model. Its `_meta`, which hosts pass to the view and not to the model, holds the questions, and a
        state that is bound to the caller, tool and arguments. The view answers through a tool (see `tools`).
page    a link to a form on the endpoint, which the model shows to the user (`question_page`)
model   a text that has the model ask the user. The answers arrive in an argument of the next call and are
        repeated in later ones, so no state passes through the model. The server cannot verify that the model
        has asked anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import caller_binding
from mcp_roundtrip.engine.journal import Journal, Kind
from mcp_roundtrip.engine.outcomes import NeedsInput
from mcp_roundtrip.engine.question_channels import own_message
from mcp_roundtrip.errors import MissingClientCapability, ProtocolError, ToolError
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS, needs_elicitation_ids, shows_forms_in_apps
from mcp_roundtrip.protocol.jsonrpc import URL_ELICITATION_REQUIRED
from mcp_roundtrip.protocol.strict_json import compact_json, digest
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.call_errors import ClientError, cannot_ask_error
from mcp_roundtrip.server.options import CONTINUATION_CODE, INPUT_RESPONSES, META_PARKED_CALL, META_QUESTIONS
from mcp_roundtrip.server.pass_and_reply import Round, asked_through
from mcp_roundtrip.server.request_types import FeatureCall, Reply, WireInputRequests

if TYPE_CHECKING:
    from mcp_roundtrip.tasks.model import Task  # a call whose state the client has needs no tasks

_VISITED: Final = {"action": "accept"}
"""The answer to a URL question, as the journal has it."""

VIEW_PAUSE_MS: Final = 2_000
"""How long a view waits before it asks again where a parked call stands."""


class Repetition(Struct, frozen=True):
    """The call that continues a parked call. `code`: for an anonymous caller. `link`: to the page."""

    tool: str
    code: str | None
    link: str

    @classmethod
    def of(cls, call: FeatureCall, parked: Task) -> Repetition:
        code = parked.task_id if call.context.principal is None else None
        return cls(call.name, code, call.context.question_page_url(parked.link))

    @property
    def text(self) -> str:
        """The words that follow "call"."""
        code = "" if self.code is None else f", and with {self.code_text}"
        return f"{self.tool} again with the same arguments{code}"

    @property
    def code_text(self) -> str:
        return f'{CONTINUATION_CODE} "{self.code}"'

    def meta(self, status: Literal["input_required", "working"], **members: Any) -> dict[str, Any]:
        """Return the `_meta` of a reply that is not the call's result."""
        added = {} if self.code is None else {"arguments": {CONTINUATION_CODE: self.code}}
        return {META_PARKED_CALL: {"status": status, **members, **added}}


def open_requests(parked: Task) -> WireInputRequests:
    return {key: asked.request for key, asked in parked.requests.items()}


def _messages(requests: WireInputRequests) -> str:
    return "".join(f"\n- {own_message(request)}" for request in requests.values())


def ask_with_state(this_round: Round, outcome: NeedsInput, state: str) -> Reply:
    """Build the reply of a call whose journal is in the state, by the channel of its questions."""
    if outcome.channel != "app":
        return ask_client(this_round, outcome.requests, state)
    if not outcome.requests:  # the call ran out of time, and the view sends the state at once
        working = {"status": "working", "retryAfterMs": 0, "state": state}
        text = f"{this_round.call.name} is working."
        return this_round.unfinished_reply(text, "checkpoint", {META_QUESTIONS: working})
    return ask_in_app(this_round, outcome.requests, state)


# -- client -------------------------------------------------------------------------------------------------


def ask_client(this_round: Round, requests: WireInputRequests, state: str) -> Reply:
    """Build the InputRequiredResult. Without requests, the client sends the state again at once."""
    call = this_round.call
    sent = {key: _for_client(call, key, each) for key, each in requests.items()}
    # Without an (optional) empty `inputRequests`, the Go SDK (1.7.0) returns an empty result to its caller.
    result = results.result("input_required", call.server_info, inputRequests=sent, requestState=state)
    outcome = "input_required" if requests else "checkpoint"
    return this_round.reply(result, outcome, asked=asked_through("client", requests))


def _for_client(call: FeatureCall, key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request with what this client reads beside the specification."""
    if request["method"] != "elicitation/create":
        return request
    params, meta = request["params"], call.context.request.meta
    added: dict[str, Any] = {}
    if params["mode"] == "url":
        added = {"elicitationId": key} if needs_elicitation_ids(meta.info) else {}
    elif shows_forms_in_apps(meta.capabilities) and (uri := call.feature.form_view_uri) is not None:
        added = {"_meta": {"ui": {"resourceUri": uri}}}  # where the host may show the form (draft SEP-3118)
    return {**request, "params": {**params, **added}}


def ask_at_urls(this_round: Round, requests: WireInputRequests, journal: Journal) -> Reply:
    """Build the error -32042, which sends the user to URLs; another error for a namespaced request.

    2025-11-25, client/elicitation "URL Elicitation Required Error". Nothing is kept: the client makes the
    call again. So `done` is called for each URL in every call (`ClientInputs.urls_may_be_visited`), and no
    step may come before this error.
    """
    call = this_round.call
    if others := sorted({each["method"] for each in requests.values()} - {"elicitation/create"}):
        needed = [f"extensions.{method}" for method in others]
        return this_round.error_reply(cannot_ask_error(call, needed, others))
    name = _elicitation_scope(call, journal)
    elicitations: list[dict[str, Any]] = [
        {"elicitationId": digest("mcp-rs/v1/elicitation", [name, key], size=24), **request["params"]}
        for key, request in requests.items()
    ]
    call.record("url_elicitation_required", asked=sorted(requests))
    # Many clients show the message, and no data.
    pages = "".join(f"\n- {each['message']} {each['url']}" for each in elicitations)
    text = f"The user has to open each link, and finish there:{pages}\nThen send this request again."
    error = ProtocolError(URL_ELICITATION_REQUIRED, text, {"elicitations": elicitations})
    return replace(this_round.reply(error, None), asked=asked_through("client", requests))


def _elicitation_scope(call: FeatureCall, journal: Journal) -> str:
    """Return a name that is equal in every such call; for anonymous callers, in this call only.

    Answers are part of it: what happens at the URL depends on them, and a model could change them later. URLs
    that were visited are not: the others keep their ids.
    """
    principal = caller_binding(call.context.principal)
    if principal is None:
        return journal.flow_id
    answers = [
        [entry.key, entry.value]
        for entry in journal.entries
        if entry.kind is Kind.ANSWER and entry.value != _VISITED
    ]
    identity = [principal, call.context.request.method, call.name, call.params.arguments, answers]
    return digest("mcp-rs/v1/legacy-run", identity, size=24)


# -- app ----------------------------------------------------------------------------------------------------


def ask_in_app(
    this_round: Round, requests: WireInputRequests, state: str, parked: Task | None = None
) -> Reply:
    """Build the result that shows questions in a view. `parked`: the parked call that the state names."""
    call = this_round.call
    questions = {
        "status": "asking",
        "tool": call.name,
        "arguments": call.params.arguments,
        "state": state,
        "requests": requests,
        "issuedAt": int(call.context.ports.clock()),
    }
    meta: dict[str, Any] = {META_QUESTIONS: questions}
    if parked is None:
        then = (
            "The result follows once the user has sent the form. "
            f"A new call of {call.name} would ask again from the start."
        )
    else:
        again = Repetition.of(call, parked)
        questions["instruction"] = f"Call {again.text} to read the result."
        meta |= again.meta("input_required", url=again.link)
        then = (  # some hosts declare views and show none
            f"When the user says that they are done, call {again.text}: that call returns the result.\n"
            f"If the user sees no form, give them this link, which shows the same questions: {again.link}"
        )
    text = (
        f"This is not finished: {call.name} asks the user, in a form that this conversation shows:"
        f"{_messages(requests)}\n"
        f"Do not answer in place of the user. Ask the user to fill in the form. {then}"
    )
    return this_round.unfinished_reply(text, "asked_in_app", meta, asked=asked_through("app", requests))


# -- page, and where a parked call stands -------------------------------------------------------------------


def ask_on_page(this_round: Round, parked: Task, *, is_repeated: bool = False) -> Reply:
    """Build the result that has the model show a link. `is_repeated`: an earlier result had the link."""
    requests, again = open_requests(parked), Repetition.of(this_round.call, parked)
    text = (
        f"This is not finished: {again.tool} asks the user, who answers on this page:\n{again.link}\n"
        f"What it asks:{_messages(requests)}\n"
        "Show the link to the user. Do not open it yourself, and do not answer in place of the user. "
        f"When the user says that they are done, call {again.text}: that call continues, and returns the "
        "result."
    )
    outcome = "waiting_for_answer" if is_repeated else "asked_on_page"
    meta = again.meta("input_required", url=again.link)
    return this_round.unfinished_reply(text, outcome, meta, asked=asked_through("page", requests))


def wait(this_round: Round, parked: Task, *, waits_for_url: bool = False) -> Reply:
    """Build the reply of a parked call that asks nothing now. The model makes it again; a view asks again."""
    tool, again = this_round.call.name, Repetition.of(this_round.call, parked)
    is_leased = parked.lease_owner is not None
    if this_round.call.params.is_in_app:
        text = "Waiting until you have finished at the link." if waits_for_url else f"{tool} is working."
        outcome = "waiting_for_answer" if waits_for_url else "still_running"
        meta = {META_QUESTIONS: {"status": "working", "retryAfterMs": VIEW_PAUSE_MS}}
    elif waits_for_url:
        text = (
            f"{tool} waits for the user, who has not finished at the page. Call {again.text} when they have."
        )
        outcome, meta = "waiting_for_answer", again.meta("input_required")
    elif is_leased:
        text = f"{tool} is still running. Call {again.text} to get its result."
        outcome, meta = "still_running", again.meta("working")
    else:
        text = (
            f"This is not finished: {tool} needs more time. Call {again.text}: it continues where it stopped."
        )
        outcome, meta = "parked", again.meta("working")
    return this_round.unfinished_reply(text, outcome, meta)


def stored_result(this_round: Round, parked: Task) -> Reply:
    """Build the reply with the result of a call that has ended. `parked` has a large result, too."""
    if parked.error is not None:
        return this_round.reply(ProtocolError(**parked.error), None)
    if parked.result["resultType"] == "task":
        call = this_round.call
        if call.params.is_in_app:
            return late(this_round, parked)
        try:
            require_capabilities(call.context, [TASKS], f"The task of this call of {call.name!r}")
        except MissingClientCapability as error:
            return this_round.reply_without(error)
    return this_round.reply(parked.result, "result_repeated")


def ended(this_round: Round) -> Reply:
    """Build the reply to an answer for a call that no longer exists."""
    text = f"This call of {this_round.call.name} has ended or expired. A new call starts from the beginning."
    return this_round.error_reply(ClientError(CallAborted(text), "call_ended"))


def unknown_code(this_round: Round) -> Reply:
    """Build the reply to a code that finds no call. It does not say why: the caller may have guessed it."""
    text = (
        f"This {CONTINUATION_CODE} continues no call of {this_round.call.name} with these arguments: it is "
        "wrong, the call has ended, or the other arguments have changed. Nothing was done. "
        f"Send the arguments of the call again, or leave out {CONTINUATION_CODE} for a new call."
    )
    return this_round.error_reply(ClientError(CallAborted(text), "call_ended"))


def late(this_round: Round, parked: Task) -> Reply:
    """Build the reply to a form whose questions have other answers already."""
    again = Repetition.of(this_round.call, parked)
    text = (
        "These questions were answered before, perhaps in another window, and the call continues with those "
        f"answers. What was sent now was not stored. Call {again.text}: that call returns the result."
    )
    return this_round.error_reply(ClientError(CallAborted(text), "answers_late"))


def too_large(this_round: Round, error: ItemTooLarge) -> Reply:
    """Build the reply to an answer that no item of the table can hold."""
    limit = f"at most about {error.limit} bytes of JSON"
    text = f"The answer to the question {error.key!r} is too large: {limit}. Give a shorter one."
    return this_round.error_reply(ClientError(ToolError(text), "answers_too_large"))


# -- model --------------------------------------------------------------------------------------------------


def ask_model(this_round: Round, requests: WireInputRequests, parked: Task | None = None) -> Reply:
    """Build the result that instructs the model to ask the user. `requests` are forms, by key."""
    tool, meta = this_round.call.name, None
    questions = "\n\n".join(_question_text(key, **form["params"]) for key, form in requests.items())
    text = (
        f"This is not finished: {tool} needs answers from the user. Ask the user, do not answer yourself. "
        f"Then call {tool} again with the same arguments and, in the argument {INPUT_RESPONSES}, an object "
        f"with the answers so far and these, by their keys.\n\n{questions}\n\n"
        'If the user does not want to answer, the answer is {"action": "decline"}.'
    )
    if parked is not None:
        again = Repetition.of(this_round.call, parked)
        meta = again.meta("input_required")
        if again.code is not None:
            text += f"\n\nThe arguments of that call have {again.code_text}, too."
    asked = asked_through("model", requests)
    return this_round.unfinished_reply(text, "asked_through_model", meta, asked=asked)


def _question_text(key: str, message: str, requestedSchema: Mapping[str, Any], mode: str) -> str:
    schema = compact_json(requestedSchema)
    # A form with a field `action` could not be distinguished from an ElicitResult.
    is_ambiguous = "action" in requestedSchema["properties"]
    form = '{"action": "accept", "content": C}, where C is an object' if is_ambiguous else "an object"
    return f"{message}\nKey: {compact_json(key)}. The answer is {form} that fits this JSON Schema: {schema}"
