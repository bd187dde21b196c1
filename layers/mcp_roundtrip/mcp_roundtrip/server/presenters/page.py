"""The presenter "page": a link to a form on the endpoint, which the model passes on to the user."""

from __future__ import annotations

from mcp_roundtrip.engine.questions import own_message
from mcp_roundtrip.server.model import Reply, WireInputRequests
from mcp_roundtrip.server.presenters.standing import Repetition
from mcp_roundtrip.server.round import Round, asked_through
from mcp_roundtrip.tasks.model import Status


def ask(
    this_round: Round, requests: WireInputRequests, again: Repetition, *, is_repeated: bool = False
) -> Reply:
    """Build the result that has the model show a link. `is_repeated`: an earlier result had it."""
    text = _text(requests, again)
    outcome = "waiting_for_answer" if is_repeated else "asked_on_page"
    meta = again.meta(Status.INPUT_REQUIRED, url=again.link)
    return this_round.unfinished_reply(text, outcome, meta, asked=asked_through("page", requests))


def _text(requests: WireInputRequests, again: Repetition) -> str:
    messages = "".join(f"\n- {own_message(request)}" for request in requests.values())
    return (
        f"This is not finished: {again.tool} asks the user, who answers on this page:\n{again.link}\n"
        f"What it asks:{messages}\n"
        "Show the link to the user. Do not open it yourself, and do not answer in place of the user. "
        f"When the user says that they are done, call {again.text}: that call continues, and returns the "
        "result."
    )
