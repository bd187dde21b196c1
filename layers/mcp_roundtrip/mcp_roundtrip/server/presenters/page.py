"""The presenter "page": a link to a form on the endpoint, which the model passes on to the user."""

from __future__ import annotations

from mcp_roundtrip.engine.inputs import own_message
from mcp_roundtrip.server.model import Reply, WireInputRequests
from mcp_roundtrip.server.round import META_PARKED_CALL, Round


def ask(this_round: Round, requests: WireInputRequests, url: str, *, is_repeated: bool = False) -> Reply:
    """Build the result that has the model show a link. `is_repeated`: an earlier result had it."""
    text = _text(this_round.call.name, requests, url)
    outcome = "waiting_for_answer" if is_repeated else "asked_on_page"
    meta = {META_PARKED_CALL: {"status": "input_required", "url": url}}
    return this_round.unfinished_reply(text, outcome, meta, asked=sorted(requests))


def _text(tool: str, requests: WireInputRequests, url: str) -> str:
    messages = "".join(f"\n- {own_message(request)}" for request in requests.values())
    return (
        f"This is not finished: {tool} asks the user, who answers on this page:\n{url}\n"
        f"What it asks:{messages}\n"
        "Show the link to the user. Do not open it yourself, and do not answer in place of the user. "
        f"When the user says that they are done, call {tool} again with the same arguments: that call "
        "continues, and returns the result."
    )
