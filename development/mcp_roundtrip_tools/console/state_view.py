"""What the console shows of a `requestState`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip_tools.console.journals import journal_rows
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.states import VerifiedState, open_state, refusal, state_keys
from mcp_roundtrip_tools.run.app import LocalApp


def show_state(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST states`. `before` is the state that the round received. Raises ConsoleError."""
    keys = tuple(state_keys((app.environment(name) for name in app.functions()), app.kms))
    token, before = request.body.get("requestState"), request.body.get("before")
    state = open_state(token, keys)
    earlier = None
    if before is not None:
        received = open_state(before, keys)
        if received.claims["rq"] != state.claims["rq"]:
            raise ConsoleError(422, "before is the state of another call", reason="other_call")
        earlier = read_journal(received.claims["st"])
    return describe_state(str(token), state, earlier)


def describe_state(token: str, state: VerifiedState, before: Journal | None) -> dict[str, Any]:
    """Return the document of a state; `before` is the journal that its round started with."""
    claims = state.claims
    journal = read_journal(claims["st"])
    return {
        "bytes": len(token),
        "isEncrypted": state.is_encrypted,
        "round": claims["rnd"],
        "issuedAtMs": claims["iat"] * 1000,
        "expiresAtMs": claims["exp"] * 1000,
        "flowStartedAtMs": claims["oiat"] * 1000,
        "isAnonymous": "sub" not in claims,
        "flow": None if journal is None else journal.flow_id,
        "unusedAnswers": [] if journal is None else sorted(journal.unused_responses),
        "journal": [] if journal is None else journal_rows(journal, before),
        "payload": claims["st"] if journal is None else None,
    }


def read_journal(payload: Any) -> Journal | None:
    """Return the journal of a state; None for one that names a parked call, which is in the task table."""
    try:
        return Journal.from_json(payload)
    except StateRejected as rejected:
        if isinstance(payload, Mapping) and "v" not in payload:
            return None
        raise refusal(rejected.reason) from None
