"""Calls of clients that open with `initialize`, which know no rounds.

Such a client could only be asked in the middle of a call over a stream that is held open. So questions take
the fallbacks (`channels_and_carriers`), and a call that waits is parked, with its journal. One exception:
`elicit_url` ends the call with -32042 (2025-11-25, client/elicitation "URL Elicitation Required Error") if
the client declares URL elicitation, or if it is unknown what it declares and no fallback reaches the user.
Nothing is kept then: the client makes the call again. So `done` is called for each URL in every call
(`ClientInputs.urls_may_be_visited`), and no step may come before -32042.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import caller_binding
from mcp_roundtrip.engine.journal import Journal, Kind
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.capabilities import ELICITATION_URL, declares
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from mcp_roundtrip.protocol.strict_json import digest
from mcp_roundtrip.server.call_errors import cannot_ask_error
from mcp_roundtrip.server.pass_and_reply import Round, asked_through
from mcp_roundtrip.server.request_types import FeatureCall, Reply, WireInputRequests

URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25, client/elicitation. Later versions have no such error, and no other meaning for its code."""

VISITED: Final = {"action": "accept"}
"""The answer to a URL question, as the journal has it."""


def adapt(call: FeatureCall) -> FeatureCall:
    """Remove what a client cannot use during a call: capabilities other than URLs, and members of rounds."""
    meta = call.context.request.meta
    params = replace(call.params, input_responses={}, request_state=None, is_retry=False)
    adapted = replace(call, params=params, context=call.context.without_input_capabilities())
    reaches_user = not {"app", "page"}.isdisjoint(adapted.plan.fallbacks)
    takes_urls = declares(meta.capabilities, ELICITATION_URL) or not (meta.knows_capabilities or reaches_user)
    if takes_urls and meta.protocol_version == LEGACY_VERSION:
        context = adapted.context
        capabilities = {**context.request.meta.capabilities, "elicitation": {"url": {}}}
        return replace(adapted, context=context.with_capabilities(capabilities))
    return adapted


# -- -32042 -------------------------------------------------------------------------------------------------


def ask_at_urls(this_round: Round, requests: WireInputRequests, journal: Journal) -> Reply:
    """Build the error that sends the user to URLs; another error for a namespaced request."""
    call = this_round.call
    if others := sorted({each["method"] for each in requests.values()} - {"elicitation/create"}):
        needed = [f"extensions.{method}" for method in others]
        return this_round.error_reply(cannot_ask_error(call, needed, others))
    name = _name(call, journal)
    elicitations: list[dict[str, Any]] = [
        {"elicitationId": digest("mcp-rs/v1/elicitation", [name, key], size=24), **request["params"]}
        for key, request in requests.items()
    ]
    call.record("url_elicitation_required", asked=sorted(requests))
    # Many clients show the message, and no data.
    pages = "".join(f"\n- {each['message']}: {each['url']}" for each in elicitations)
    text = f"The user has to open each link, and finish there:{pages}\nThen send this request again."
    error = ProtocolError(URL_ELICITATION_REQUIRED, text, {"elicitations": elicitations})
    return replace(this_round.reply(error, None), asked=asked_through("client", requests))


def _name(call: FeatureCall, journal: Journal) -> str:
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
        if entry.kind is Kind.ANSWER and entry.value != VISITED
    ]
    identity = [principal, call.context.request.method, call.name, call.params.arguments, answers]
    return digest("mcp-rs/v1/legacy-run", identity, size=24)
