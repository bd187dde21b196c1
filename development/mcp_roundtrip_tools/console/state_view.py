"""What the console shows of a `requestState`, and one in which a character was changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip_tools.console.journals import journal_rows
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.states import MAX_LENGTH, VerifiedState, open_state, refusal, state_keys
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder

PARTS: Final = {
    3: ("header", "claims", "signature"),
    5: ("header", "encrypted key", "initialization vector", "ciphertext", "tag"),
}
"""The names of the parts of a signed and of an encrypted token, by their number."""

_STATE: Final = re.compile(rb'"requestState": ?"([A-Za-z0-9_.-]+)"')


def show_state(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST states`. `before` is the state that the round received. Raises ConsoleError."""
    keys = tuple(state_keys((app.environment(name) for name in app.functions()), app.kms))
    token, before = request.body.get("requestState"), request.body.get("before")
    try:
        state = open_state(token, keys)
    except ConsoleError as error:
        raise ConsoleError(
            error.status, f"{error}{_describe_damage(token, app.recorder)}", **error.members
        ) from None
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


def damage_state(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST states/damage`. Raises ConsoleError."""
    return flip_one_byte(request.text("requestState"))


def flip_one_byte(token: str) -> dict[str, Any]:
    """Return the state with another character in the middle of its content. Raises ConsoleError."""
    if not 0 < len(token) <= MAX_LENGTH:
        raise ConsoleError(400, f"requestState must have 1 to {MAX_LENGTH} characters")
    position = token.index(longest := max(token.split("."), key=len)) + len(longest) // 2
    before = token[position]
    # In the alphabet of Base64url, so that the server does not refuse the state for its spelling.
    after = "A" if before != "A" else "B"
    changed = token[:position] + after + token[position + 1 :]
    part = _part_at(token, position)
    return {"requestState": changed, "position": position, "part": part, "before": before, "after": after}


def _part_at(token: str, position: int) -> str | None:
    """Return the name of the part at a position; None for a dot and for a text that is no token."""
    names = PARTS.get(token.count(".") + 1)
    return None if names is None or token[position] == "." else names[token.count(".", 0, position)]


def _describe_damage(token: Any, recorder: RunRecorder) -> str:
    """Return a sentence about the character in which a token differs from a state of a response; or ""."""
    for exchange in reversed(recorder.exchanges()):
        for issued in (found[1].decode() for found in _STATE.finditer(exchange.response_body)):
            if isinstance(token, str) and len(issued) == len(token):
                changed = [at for at, pair in enumerate(zip(issued, token, strict=True)) if len({*pair}) > 1]
                if len(changed) == 1:
                    part = _part_at(issued, changed[0]) or "a dot"
                    return f" It differs from an issued state at position {changed[0]}: in the {part}."
    return ""
