"""Ask through a view: the channel "app" (MCP Apps, SEP-1865).

The result of the call is complete for the model. Its `_meta`, which hosts pass to the view and not to the
model, holds what the view needs: the questions, and a state that is bound to the caller, the tool and the
arguments. The view answers through an app-only tool (`server.answer_tool`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.engine.inputs import own_message
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.model import FeatureCall, Reply
from mcp_roundtrip.server.round import LARGE_STATE, Round

META_QUESTIONS: Final = "mcp-roundtrip/questions"
"""The member of a result's `_meta` that the view reads. docs/guides/views.md describes its content."""

WireInputRequests = Mapping[str, Mapping[str, Any]]


def ask(this_round: Round, requests: WireInputRequests, journal: Journal) -> Reply:
    """Build the result that shows questions in a view; the state of the call travels with them."""
    state = _seal(this_round, requests, journal)
    if isinstance(state, Reply):
        return state
    return _reply(this_round, requests, state, _unparked_text(this_round.call.name, requests))


def show(
    this_round: Round,
    requests: WireInputRequests,
    payload: Mapping[str, Any],
    *,
    link: str | None = None,
) -> Reply:
    """Build the result that shows the questions of a parked call, which `payload` names.

    `link`: a page with the same questions, for a user whose host declares views and shows none.
    """
    call = this_round.call
    try:
        state = call.context.ports.state_codec().seal(call.binding, payload, round=1, first_issued_at=None)
    except KeyServiceError as error:
        return _state_unavailable(this_round, error)
    instruction = f"Call {call.name} again with the same arguments to read the result."
    text = _parked_text(call.name, requests, link)
    return _reply(this_round, requests, state, text, {"instruction": instruction})


def working(this_round: Round, journal: Journal) -> Reply:
    """Build the result for a view whose call ran out of time: the view continues it at once."""
    state = _seal(this_round, {}, journal)
    if isinstance(state, Reply):
        return state
    call = this_round.call
    return this_round.reply(working_result(call, f"{call.name} is working.", 0, state), "checkpoint")


def working_result(
    call: FeatureCall, text: str, retry_after_ms: int, state: str | None = None
) -> dict[str, Any]:
    """Build the result for a view whose call still runs: the view asks again after so many milliseconds.

    `state` replaces the state that the view has.
    """
    result = results.tool_result(call.server_info, [results.text_content(text)], {})
    given = {} if state is None else {"state": state}
    return with_questions(result, {"status": "working", "retryAfterMs": retry_after_ms, **given})


def with_questions(result: Mapping[str, Any], questions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what the view reads."""
    return {**result, "_meta": {**result.get("_meta", {}), META_QUESTIONS: questions}}


def _seal(this_round: Round, requests: WireInputRequests, journal: Journal) -> str | Reply:
    """Return the state of the next round, or the reply that says why there is none."""
    call = this_round.call
    try:
        state = this_round.seal(journal)
    except KeyServiceError as error:
        return _state_unavailable(this_round, error)
    except (StateRejected, StateTooLarge) as error:
        from mcp_roundtrip.server.errors import unsealed_state_error  # most states can be sealed

        failure = unsealed_state_error(call, error, requests, journal)
        return this_round.error_reply(failure.error, failure.outcome)
    if len(state) > LARGE_STATE:
        call.context.ports.observer.record("state_large", **call.log_identity, characters=len(state))
    return state


def _reply(
    this_round: Round,
    requests: WireInputRequests,
    state: str,
    text: str,
    members: Mapping[str, Any] | None = None,
) -> Reply:
    call = this_round.call
    questions = {
        "status": "asking",
        "tool": call.name,
        "arguments": call.params.arguments,
        "state": state,
        "requests": requests,
        "issuedAt": int(call.context.ports.clock()),
        **(members or {}),
    }
    result = results.tool_result(call.server_info, [results.text_content(text)], {})
    return this_round.reply(with_questions(result, questions), "asked_in_app", asked=sorted(requests))


def _state_unavailable(this_round: Round, error: KeyServiceError) -> Reply:
    call = this_round.call
    call.context.ports.observer.record_failure("state_unavailable", error, **call.log_identity)
    return this_round.reply(call.context.internal_error, None)


# -- texts for the model ------------------------------------------------------------------------------------


def _asked(tool: str, requests: WireInputRequests) -> str:
    messages = "".join(f"\n- {own_message(request)}" for request in requests.values())
    return (
        f"This is not finished: {tool} asks the user, in a form that this conversation shows:{messages}\n"
        "Do not answer in place of the user. Ask the user to fill in the form."
    )


def _unparked_text(tool: str, requests: WireInputRequests) -> str:
    return (
        f"{_asked(tool, requests)} The result follows once the user has sent the form. "
        f"A new call of {tool} would ask again from the start."
    )


def _parked_text(tool: str, requests: WireInputRequests, link: str | None) -> str:
    text = (
        f"{_asked(tool, requests)} When the user says that they are done, call {tool} again with the same "
        "arguments: that call returns the result."
    )
    if link is None:
        return text
    return f"{text}\nIf the user sees no form, give them this link, which shows the same questions: {link}"
