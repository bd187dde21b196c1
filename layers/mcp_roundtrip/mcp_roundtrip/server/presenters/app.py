"""The presenter "app": a form that the host shows in the conversation (MCP Apps, SEP-1865).

The result of the call is complete for the model. Its `_meta`, which hosts pass to the view and not to the
model, holds what the view needs: the questions, and a state that is bound to the caller, the tool and the
arguments. The view answers through an app-only tool (`server.views.AnswerTool`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.engine.questions import own_message
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.model import FeatureCall, Reply, WireInputRequests
from mcp_roundtrip.server.presenters.page import Repetition
from mcp_roundtrip.server.round import Round, asked_through
from mcp_roundtrip.tasks.model import Status

META_QUESTIONS: Final = "mcp-roundtrip/questions"
"""The member of a result's `_meta` that the view reads. docs/guides/views.md describes its content."""

VIEW_PAUSE_MS: Final = 2_000
"""How long a view waits before it asks again where a parked call stands."""


def ask(this_round: Round, requests: WireInputRequests, state: str) -> Reply:
    """Build the result that shows questions in a view; the state of the call travels with them."""
    text = _unparked_text(this_round.call.name, requests)
    meta = {META_QUESTIONS: _questions(this_round, requests, state)}
    return this_round.unfinished_reply(text, "asked_in_app", meta, asked=asked_through("app", requests))


def ask_parked(this_round: Round, requests: WireInputRequests, state: str, again: Repetition) -> Reply:
    """Build the result that shows the questions of a parked call, which the state names.

    It has the link of a page with the same questions, for a user whose host declares views and shows none.
    """
    instruction = f"Call {again.text} to read the result."
    meta = {
        META_QUESTIONS: {**_questions(this_round, requests, state), "instruction": instruction},
        **again.meta(Status.INPUT_REQUIRED, url=again.link),
    }
    text = _parked_text(requests, again)
    return this_round.unfinished_reply(text, "asked_in_app", meta, asked=asked_through("app", requests))


def work(this_round: Round, state: str) -> Reply:
    """Build the result for a view whose call ran out of time: the view sends the state at once."""
    working = {"status": "working", "retryAfterMs": 0, "state": state}
    text = f"{this_round.call.name} is working."
    return this_round.unfinished_reply(text, "checkpoint", {META_QUESTIONS: working})


def work_parked(this_round: Round, *, waits_for_url: bool = False) -> Reply:
    """Build the result for a view whose parked call asks nothing now: the view asks again by itself."""
    text = f"{this_round.call.name} is working."
    if waits_for_url:
        text = "Waiting until you have finished at the link."
    working = {"status": "working", "retryAfterMs": VIEW_PAUSE_MS}
    outcome = "waiting_for_answer" if waits_for_url else "still_running"
    return this_round.unfinished_reply(text, outcome, {META_QUESTIONS: working})


def cannot_be_answered(call: FeatureCall) -> Reply:
    """Build the reply to a view whose state is not valid. The log has the reason."""
    text = (
        "These questions can no longer be answered: they have expired, or they belong to another call or "
        "user. Ask the assistant to call the tool again."
    )
    body = with_questions(results.tool_error(call.server_info, text), {"status": "ended"})
    return Reply(body, log_fields={**call.log_identity, "outcome": "state_refused"})


def with_status(reply: Reply) -> Reply:
    """Add the status for the view to a reply that has none."""
    body, outcome = reply.body, reply.log_fields.get("outcome")
    if isinstance(body, ProtocolError) or META_QUESTIONS in body.get("_meta", {}):
        return reply
    if outcome == "answers_too_large":
        return reply  # the view keeps its form
    status = "ended" if outcome in ("call_ended", "answers_late") else "complete"
    return replace(reply, body=with_questions(body, {"status": status}))


def with_questions(result: Mapping[str, Any], questions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what the view reads."""
    return {**result, "_meta": {**result.get("_meta", {}), META_QUESTIONS: questions}}


def _questions(this_round: Round, requests: WireInputRequests, state: str) -> dict[str, Any]:
    """Return what the view needs to ask, and to send the answers."""
    call = this_round.call
    return {
        "status": "asking",
        "tool": call.name,
        "arguments": call.params.arguments,
        "state": state,
        "requests": requests,
        "issuedAt": int(call.context.ports.clock()),
    }


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


def _parked_text(requests: WireInputRequests, again: Repetition) -> str:
    return (
        f"{_asked(again.tool, requests)} When the user says that they are done, call {again.text}: that call "
        "returns the result.\n"
        f"If the user sees no form, give them this link, which shows the same questions: {again.link}"
    )
