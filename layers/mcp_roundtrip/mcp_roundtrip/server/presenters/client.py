"""The presenter "client": the protocol's own input requests (SEP-2322)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_forms_in_apps
from mcp_roundtrip.server.model import Reply, WireInputRequests
from mcp_roundtrip.server.round import Round, asked_through


def ask(this_round: Round, requests: WireInputRequests, state: str) -> Reply:
    """Build the InputRequiredResult. Without requests, the client sends the state again at once."""
    call = this_round.call
    if requests and shows_forms_in_apps(call.context.request.meta.capabilities):
        requests = _in_view(call.feature.form_view_uri, requests)
    result = results.input_required(call.server_info, requests, state)
    outcome = "input_required" if requests else "checkpoint"
    return this_round.reply(result, outcome, asked=asked_through("client", requests))


def _in_view(uri: str | None, requests: WireInputRequests) -> WireInputRequests:
    """Add to forms the view in which the host may show them (draft SEP-3118)."""
    if uri is None:
        return requests
    hint = {"_meta": {"ui": {"resourceUri": uri}}}
    return {
        key: {**request, "params": {**request["params"], **(hint if _is_form(request) else {})}}
        for key, request in requests.items()
    }


def _is_form(request: Mapping[str, Any]) -> bool:
    is_elicitation: bool = request["method"] == "elicitation/create"
    return is_elicitation and request["params"]["mode"] == "form"
