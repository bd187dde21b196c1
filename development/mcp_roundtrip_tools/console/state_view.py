"""The document of `POST states`: a decoded `requestState`, and which of its entries are new."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip_tools.console.callers import caller_of
from mcp_roundtrip_tools.console.damage import flip_one_byte
from mcp_roundtrip_tools.console.issued_states import describe_damage, find_issued
from mcp_roundtrip_tools.console.journals import journal_rows
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.state_keys import StateKeys, state_keys
from mcp_roundtrip_tools.console.states import VerifiedState, open_state, refusal
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder


def show_state(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST states`. Raises ConsoleError."""
    keys = tuple(state_keys((app.environment(name) for name in app.functions()), app.kms))
    token, before = request.body.get("requestState"), request.body.get("before")
    state = _open(token, keys, app.recorder)
    earlier = None if before is None else _earlier(before, keys, state)
    issued = find_issued(str(token), app.recorder)
    call = {} if issued is None else issued.call
    caller = None if issued is None else caller_of(issued.exchange, state.claims)
    origin = {"exchangeId": None, "method": None, "tool": None, "principal": caller, **call}
    return {**origin, **describe_state(str(token), state, earlier, time.time())}


def _open(token: Any, keys: Sequence[StateKeys], recorder: RunRecorder) -> VerifiedState:
    """Open a state. For a damaged one, the message also says where it differs from the issued one."""
    try:
        return open_state(token, keys)
    except ConsoleError as error:
        where = describe_damage(token, recorder) if isinstance(token, str) else ""
        raise ConsoleError(error.status, f"{error}{where}", **error.members) from None


def damage_state(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST states/damage`. Raises ConsoleError."""
    position = request.body.get("position")
    if position is not None and type(position) is not int:
        raise ConsoleError(400, "position must be a whole number")
    return flip_one_byte(request.text("requestState"), position)


def describe_state(token: str, state: VerifiedState, before: Journal | None, now: float) -> dict[str, Any]:
    """Return the document of a state; `before` is the journal that its round started with."""
    claims = state.claims
    journal = read_journal(claims["st"])
    expired = _expiry(claims, now)
    return {
        "bytes": len(token),
        "isEncrypted": state.keys.epochs is not None,
        "round": claims["rnd"],
        "issuedAtMs": claims["iat"] * 1000,
        "expiresAtMs": claims["exp"] * 1000,
        "flowStartedAtMs": claims["oiat"] * 1000,
        "reason": expired,
        "argumentsDigest": claims["rq"],
        "isAnonymous": "sub" not in claims,
        "principalDigest": claims.get("sub"),
        "flow": None if journal is None else journal.flow_id,
        "questions": [] if journal is None else sorted(journal.outstanding),
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


def _earlier(token: Any, keys: Sequence[StateKeys], state: VerifiedState) -> Journal | None:
    """Return the journal of the state that a round received, which must be of the same call."""
    received = open_state(token, keys)
    if received.claims["rq"] != state.claims["rq"]:
        raise ConsoleError(422, "before is the state of another call", reason="other_call")
    return read_journal(received.claims["st"])


def _expiry(claims: Mapping[str, Any], now: float) -> str | None:
    """Return why the server would refuse a state that is too old; None if it is not."""
    return "expired" if now >= claims["exp"] else None
