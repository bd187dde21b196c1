"""Map the exception of a feature, or a call that cannot continue, to a client error and a log record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.errors import (
    INVALID_PARAMS,
    Drift,
    MissingClientCapability,
    ProtocolError,
    StateRejected,
    ToolError,
    UsageError,
)
from mcp_roundtrip.internal_errors import (
    ArgumentsError,
    CallAborted,
    KeyServiceError,
    SettingsError,
    StateTooLarge,
)
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, reason_not_sendable
from mcp_roundtrip.server.model import FeatureCall

if TYPE_CHECKING:
    from mcp_roundtrip.engine.run import Run

TASK_REQUESTS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The methods of the input requests that a task may have: namespaced ones are not among them."""

INVALID_STATE: Final = "Invalid or expired requestState"
"""The only message for a refused state; the log has the reason."""

WireInputRequests = Mapping[str, Mapping[str, Any]]
"""The `inputRequests` of a result: InputRequest objects by key."""


MAX_DESCRIBED: Final = 5
"""How many open questions an error names."""


class ClientError(Struct, frozen=True):
    """The error that the client receives, and the field `outcome` of the log."""

    error: ToolError | ProtocolError
    outcome: str | None = None


def invalid_state(call: FeatureCall, rejected: StateRejected) -> ProtocolError:
    """Return the error for a refused state, and log the reason."""
    call.context.ports.observer.record("state_refused", **call.log_identity, reason=rejected.reason)
    return ProtocolError(INVALID_PARAMS, INVALID_STATE)


# -- exceptions ---------------------------------------------------------------------------------------------


def client_error(call: FeatureCall, error: BaseException) -> ClientError:
    """Return the error for the client, and log what the operator has to know."""
    if isinstance(error, BaseExceptionGroup):
        error = collapse_exception_group(error)
    if isinstance(error, ArgumentsError):
        return ClientError(error, "arguments_refused")
    observer, identity, kind = call.context.ports.observer, call.log_identity, call.feature.kind
    observer.on_exception(error)
    if isinstance(error, ToolError):
        return ClientError(error, "tool_error")
    if isinstance(error, MissingClientCapability) and error.lost:
        asked = sorted(error.questions)
        observer.record("asked_after_steps", **identity, asked=asked, after=list(error.lost))
    if isinstance(error, MissingClientCapability) and error.questions:
        from mcp_roundtrip.server.channels import remedy_for  # most calls can ask

        remedy = remedy_for(call, error.required)
        error = MissingClientCapability(error.required, error.questions, lost=error.lost, remedy=remedy)
    if isinstance(error, ProtocolError):
        if (problem := reason_not_sendable(error)) is None:
            return ClientError(error)
        usage = UsageError(f"ProtocolError({error.code!r}) cannot be sent: {problem}")
        usage.__cause__ = error
        error = usage
    if isinstance(error, SettingsError):
        observer.record_failure("misconfigured", error)
        return ClientError(call.context.internal_error)
    if isinstance(error, KeyServiceError):
        observer.record_failure("state_unavailable", error, **identity)
        return ClientError(call.context.internal_error)
    if isinstance(error, Drift):
        observer.record_failure("drift", error, **identity)
        text = f"The {kind} changed while this call was under way ({error}). Call it again."
        return ClientError(ProtocolError(INTERNAL_ERROR, text))
    observer.record_failure(f"{kind}_raised", error, **identity)
    text = f"The {kind} failed. Quote {call.context.invocation.correlation_id} to its operator."
    return ClientError(CallAborted(text), f"{kind}_raised")


def collapse_exception_group(error: BaseException) -> BaseException:
    """Return the one exception that stands for a group: a response has one error.

    A TaskGroup raises a group for the failures of its branches.
    """
    causes = list(_leaves(error))
    if len(causes) == 1:
        return causes[0]
    lacking = [cause for cause in causes if isinstance(cause, MissingClientCapability)]
    if len(lacking) == len(causes):
        questions = {key: asked for cause in lacking for key, asked in cause.questions.items()}
        required = _merge_capabilities([cause.required for cause in lacking])
        lost = dict.fromkeys(key for cause in lacking for key in cause.lost)
        return MissingClientCapability(required, questions, lost=lost)
    if all(isinstance(cause, ToolError) for cause in causes):
        return ToolError("\n".join(dict.fromkeys(map(str, causes))))
    return error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for cause in error.exceptions:
            yield from _leaves(cause)
    else:
        yield error


def _merge_capabilities(capabilities: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = {name for each in capabilities for name in each}
    return {
        name: _merge_capabilities([each[name] for each in capabilities if name in each])
        for name in sorted(names)
    }


# -- calls that need another round and cannot have one ------------------------------------------------------


def too_many_rounds(call: FeatureCall, requests: WireInputRequests, rounds: int, run: Run) -> ClientError:
    """Return the error of a call that is not finished after its last round."""
    text = f"The call was ended: it did not finish within {rounds} rounds.{describe_open_questions(run)}"
    return _unfinished(call, requests, text, "too_many_rounds")


def describe_open_questions(run: Run) -> str:
    """Return a sentence for each of the first open questions, with the reason if it was asked before."""
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
    call: FeatureCall, error: StateRejected | StateTooLarge, requests: WireInputRequests, journal: Journal
) -> ClientError:
    """Return the error of a call whose flow has expired, or whose state is too large."""
    if isinstance(error, StateTooLarge):
        return _state_too_large(call, error, journal)
    text = f"The call took too long for another round. Call the {call.feature.kind} again."
    return _unfinished(call, requests, text, "flow_expired")


def _unfinished(call: FeatureCall, requests: WireInputRequests, text: str, outcome: str) -> ClientError:
    urls = [params["url"] for each in requests.values() if (params := each["params"]).get("mode") == "url"]
    pages = [url.partition("#")[0].partition("?")[0] for url in urls]  # the rest may hold a link's token
    if pages:
        text += (
            f" It waits for the user, who has not finished at {' and at '.join(pages)}. Once that is done, "
            f"call the {call.feature.kind} again with the same arguments: it continues from there."
        )
    return ClientError(CallAborted(text), outcome)


def _state_too_large(call: FeatureCall, error: StateTooLarge, journal: Journal) -> ClientError:
    """Return the error that names the cause: large step results, which the author can shrink, or answers."""
    steps = {entry.key: len(compact_json(entry.value)) for entry in journal.entries if entry.kind.is_effect}
    if sum(steps.values()) > error.size // 4:
        largest = max(steps, key=lambda key: steps[key])
        observer = call.context.ports.observer
        observer.record_failure("state_too_large", error, **call.log_identity, largest_step=largest)
        return ClientError(call.context.internal_error)
    text = f"The answers are too large for another round: about {error.limit // 2} characters in all."
    return ClientError(ToolError(text), "answers_too_large")
