"""The errors of calls: of exceptions, of calls that cannot continue, and of calls that cannot ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.engine.journal import Journal, keys_of_steps
from mcp_roundtrip.engine.outcomes import single_exception
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.errors import (
    INVALID_PARAMS,
    Drift,
    MissingClientCapability,
    ProtocolError,
    StateRejected,
    ToolError,
    UsageError,
    dotted_capabilities,
)
from mcp_roundtrip.internal_errors import (
    ArgumentsError,
    CallAborted,
    KeyServiceError,
    Refusal,
    SettingsError,
    StateTooLarge,
)
from mcp_roundtrip.protocol.capabilities import declares_required
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip.protocol.jsonrpc import CHANGED_KEY, INTERNAL_ERROR, reason_not_sendable
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.request_types import FeatureCall, WireInputRequests

TASK_REQUESTS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The methods of the input requests that a task may have: namespaced ones are not among them."""

INVALID_STATE: Final = (
    "Invalid or expired requestState. Send the request again without it: the call starts from its beginning."
)
"""The only message for a refused state; the log has the reason."""

MAX_DESCRIBED: Final = 5
"""How many open questions, or steps, an error names."""


class ClientError(Struct, frozen=True):
    """The error that the client receives, and the `outcome` of the log."""

    error: ToolError | ProtocolError
    outcome: str | None = None


def invalid_state(call: FeatureCall, rejected: StateRejected) -> ProtocolError:
    """Return the error for a refused state, and log the reason."""
    call.record("state_refused", reason=rejected.reason)
    return Refusal(rejected.reason, INVALID_PARAMS, INVALID_STATE)


# -- exceptions ---------------------------------------------------------------------------------------------


def client_error(call: FeatureCall, error: BaseException, repeated: str) -> ClientError:
    """Return the error for the client, and log what the operator has to know.

    `repeated` is the sentence of `describe_repeated` about the steps of the call.
    """
    error = single_exception(error)
    if isinstance(error, ArgumentsError):  # after steps, a release has changed the parameters
        return ClientError(ArgumentsError(f"{error}{repeated}"), "arguments_refused")
    call.context.ports.observer.on_exception(error)
    if isinstance(error, ToolError):
        return ClientError(error, "tool_error")
    if isinstance(error, MissingClientCapability):
        if error.lost:
            call.record("asked_after_steps", asked=sorted(error.questions), after=list(error.lost))
        if not call.context.takes_rounds or _is_declared(call, error):
            return unaskable_error(call, error)
    if isinstance(error, ProtocolError):
        if (problem := reason_not_sendable(error)) is None:
            return ClientError(error)
        usage = UsageError(f"ProtocolError({error.code!r}) cannot be sent: {problem}")
        usage.__cause__ = error
        error = usage
    if isinstance(error, (SettingsError, KeyServiceError)):
        is_setting = isinstance(error, SettingsError)
        call.record_failure("misconfigured" if is_setting else "state_unavailable", error)
        return internal_error(call, repeated)
    kind = call.feature.kind
    if isinstance(error, Drift):
        call.record_failure("drift", error)
        text = f"The {kind} changed while this call was under way ({error}). Call it again."
        text += describe_repeated(error.steps)
        return ClientError(ProtocolError(INTERNAL_ERROR, text, {CHANGED_KEY: error.key}))
    call.record_failure(f"{kind}_raised", error)
    text = f"The {kind} failed. Quote {call.context.invocation.correlation_id} to its operator."
    return ClientError(CallAborted(f"{text}{repeated}"), f"{kind}_raised")


def internal_error(call: FeatureCall, repeated: str) -> ClientError:
    """Return the error of a call that this deployment cannot finish. The log has the reason."""
    return ClientError(ProtocolError(INTERNAL_ERROR, f"{call.context.internal_error}{repeated}"))


def describe_repeated(steps: Sequence[str]) -> str:
    """Return a sentence about the steps that a repeated call runs again, if there are any."""
    if not steps:
        return ""
    others = ", …" if len(steps) > MAX_DESCRIBED else ""
    names = ", ".join(steps[:MAX_DESCRIBED]) + others
    return f" These steps have run, and will run again if the call is repeated: {names}."


def _is_declared(call: FeatureCall, error: MissingClientCapability) -> bool:
    """Return whether the request declares what its questions need, so that -32021 would be untrue.

    That is so in a call that waits, or that a view makes: it asks the client nothing.
    """
    declared = call.context.params.get("_meta", {}).get(META_CLIENT_CAPABILITIES) or {}
    return bool(error.questions) and declares_required(declared, error.required)


def feature_error(error: ToolError) -> ProtocolError:
    """Return the JSON-RPC error of a prompt or resource. Its HTTP status is 200: notifications precede it.

    It has no `data`: clients take one with a `uri` for that of an unknown resource.
    """
    code = INTERNAL_ERROR if error.is_internal else INVALID_PARAMS
    return ProtocolError(code, str(error), http_status=200)


# -- calls that need another round and cannot have one ------------------------------------------------------


def too_many_rounds(call: FeatureCall, requests: WireInputRequests, rounds: int, run: Run) -> ClientError:
    text = f"The call was ended: it did not finish within {rounds} rounds.{describe_open_questions(run)}"
    return _unfinished(call, requests, text, "too_many_rounds")


def describe_open_questions(run: Run) -> str:
    """Return a sentence for each open question, `MAX_DESCRIBED` at most."""
    changes, sentences = run.changed_questions(), list[str]()
    for key, request in islice(run.requests.items(), MAX_DESCRIBED):
        if (reason := run.requests.refused.get(key)) is not None:
            sentences.append(f" The last answer to the question {key!r} was not accepted: {reason}.")
        elif key in changes:
            sentences.append(
                f" The question {key!r} is not the one that was answered: its {changes[key]} had changed."
            )
        elif not request.has_consent:
            sentences.append(f" The question {key!r} has no answer.")
    return "".join(sentences)


def unsealed_state_error(
    call: FeatureCall,
    error: StateRejected | StateTooLarge,
    requests: WireInputRequests,
    journal: Journal,
) -> ClientError:
    """Return the error of a call whose flow has expired, or whose journal is too large."""
    repeated = describe_repeated(keys_of_steps(journal.entries))
    if not isinstance(error, StateTooLarge):
        text = f"The call took too long for another round. Call the {call.feature.kind} again.{repeated}"
        return _unfinished(call, requests, text, "flow_expired")
    steps = {entry.key: len(compact_json(entry.value)) for entry in journal.entries if entry.kind.is_effect}
    answers = [entry.value for entry in journal.entries if not entry.kind.is_effect]
    answers += journal.unused_responses.values()
    answered = len(compact_json([each.get("content") for each in answers if isinstance(each, Mapping)]))
    # The user can shorten answers, but not results, or the keys of many small results and questions.
    if sum(steps.values()) > error.size // 4 or answered < error.size // 8:
        error.add_note(f"The state has {len(journal.entries)} entries. Open questions: {len(requests)}")
        largest = max(steps, key=lambda key: steps[key], default=None)
        if largest is not None:
            error.add_note(f"The largest result is that of step {largest!r}: {steps[largest]} characters")
        call.record_failure("state_too_large", error, largest_step=largest)
        return internal_error(call, repeated)
    text = f"The answers are too large for another round: about {error.limit // 2} characters in all."
    return ClientError(ToolError(text + repeated), "answers_too_large")


def _unfinished(call: FeatureCall, requests: WireInputRequests, text: str, outcome: str) -> ClientError:
    urls = [params["url"] for each in requests.values() if (params := each["params"]).get("mode") == "url"]
    pages = [url.partition("#")[0].partition("?")[0] for url in urls]  # the rest may hold a link's token
    if pages:
        is_anonymous = call.context.principal is None  # then `ctx.reference` belongs to one call
        text += (
            f" It waits for the user, who has not finished at {' and at '.join(pages)}. Once that is done, "
            f"call the {call.feature.kind} again with the same arguments: "
            f"{'it may ask for another page' if is_anonymous else 'it continues from there'}."
        )
    return ClientError(CallAborted(text), outcome)


# -- calls that ask what their client cannot be asked -------------------------------------------------------


def _askable(capabilities: Iterable[str]) -> str:
    return f"A client that supports {', '.join(capabilities)} in MCP {PROTOCOL_VERSION} can be asked."


def unaskable_error(call: FeatureCall, error: MissingClientCapability) -> ClientError:
    """Return a text for the model about what the client lacks, where -32021 would not tell it."""
    lacking = [*dotted_capabilities(error.required)]
    if error.lost:
        return too_late_error(call, lacking)
    hint = ""
    if "model" in call.plan.fallbacks and any(each.is_user_only() for each in error.questions.values()):
        hint = " Only the user may answer it: an answer that a model passes on does not count."
    if error.questions:
        return cannot_ask_error(call, lacking, map(_quote, error.questions.values()), hint)
    return ClientError(CallAborted(_requirements_text(call.feature.kind, error)), "not_asked")


def cannot_ask_error(
    call: FeatureCall, capabilities: Iterable[str], questions: Iterable[str], hint: str = ""
) -> ClientError:
    """Return the error that quotes questions, and names the capabilities that they need."""
    asked = "".join(f"\n- {question}" for question in dict.fromkeys(questions))
    text = (
        f"This {call.feature.kind} has to ask something that this client cannot be asked:{asked}\n"
        f"{_askable(capabilities)}{hint}"
    )
    return ClientError(CallAborted(text), "not_asked")


def asked_after_steps(call: FeatureCall, asked: Iterable[str], journal: Journal) -> ClientError:
    """Log questions after steps that a new call would repeat, and return their error."""
    call.record("asked_after_steps", asked=sorted(asked), after=journal.repeated_effects)
    return too_late_error(call, ["elicitation"])


def too_late_error(call: FeatureCall, capabilities: Iterable[str]) -> ClientError:
    """Return the error for a question after steps that a new call would repeat."""
    text = (
        f"This {call.feature.kind} asks a question after it has started its work, and it cannot resume with "
        f"this client: do not call it again. {_askable(capabilities)}"
    )
    return ClientError(CallAborted(text), "not_asked")


def out_of_time_error(call: FeatureCall, journal: Journal) -> ClientError:
    """Return the error of a call that cannot resume, and log what a new call repeats."""
    if lost := journal.repeated_effects:
        call.record("out_of_time", after=lost)
    text = (
        f"This {call.feature.kind} ran out of time, and cannot resume with this client. "
        f"A client that follows the rounds or the tasks of MCP {PROTOCOL_VERSION} can wait for it."
        f"{describe_repeated(keys_of_steps(journal.entries))}"
    )
    return ClientError(CallAborted(text), "out_of_time")


def _requirements_text(kind: str, error: MissingClientCapability) -> str:
    if TASKS_EXTENSION in error.required.get("extensions", {}):
        return (
            f"This {kind} takes so long that it needs tasks, which this client cannot follow. "
            f"A client that supports tasks in MCP {PROTOCOL_VERSION} can."
        )
    needed = ", ".join(dotted_capabilities(error.required))
    return (
        f"This {kind} needs a client with these capabilities: {needed}. "
        f"It has to declare them in MCP {PROTOCOL_VERSION}."
    )


def _quote(question: Any) -> str:
    params = question.params()
    parts = [params.get("message", question.method), params.get("url")]
    return " ".join(part for part in parts if part is not None)
