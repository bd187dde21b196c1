"""The carrier "state": the journal waits in the state that the client sends again (SEP-2322)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcomes import NeedsInput
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError, StateTooLarge
from mcp_roundtrip.server.call_errors import client_error, invalid_state, unsealed_state_error
from mcp_roundtrip.server.pass_and_reply import Round
from mcp_roundtrip.server.request_types import FeatureCall, Reply
from mcp_roundtrip.state.claims import OpenState

CLIENT_ROUNDS: Final = 10
"""Number of rounds after which most clients give up a call."""

LARGE_STATE: Final = 16_384
"""Characters from which a state is logged: it travels twice in every round."""

_OF_VIEW: Final = "parked"
_OF_CLIENT: Final = "asked"
"""The member of a state that names a parked call: a client cannot use a view's state, and a view no other."""


def max_rounds(call: FeatureCall, journal: Journal) -> int:
    """Return the limit of rounds. Those that only wait for a URL extend it, up to that of most clients."""
    limit = call.context.ports.settings.max_rounds
    return min(limit + journal.url_wait_rounds, max(limit + 1, CLIENT_ROUNDS))


def open_state(call: FeatureCall, state: str) -> OpenState:
    """Open the state of a request. Raises StateRejected, and ProtocolError if a key is not available."""
    try:
        return call.context.ports.state_codec().open(call.binding, state)
    except KeyServiceError as error:
        call.record_failure("state_unavailable", error)
        raise call.context.internal_error from error


def parked_task(opened: OpenState, *, for_view: bool) -> str | None:
    """Return the task id of the parked call that a state names; None if it names none."""
    payload = opened.payload
    return payload.get(_OF_VIEW if for_view else _OF_CLIENT) if isinstance(payload, dict) else None


def journal_of(call: FeatureCall, opened: OpenState) -> Journal:
    """Return the journal of a state. Raises ProtocolError if it has none of this version."""
    try:
        return Journal.from_json(opened.payload)
    except StateRejected as rejected:
        raise invalid_state(call, rejected) from None


def save(this_round: Round, outcome: NeedsInput) -> str | Reply:
    """Return the state of the next round, or the reply that says why there is none."""
    call, opened = this_round.call, this_round.opened
    first_issued_at = None if opened is None else opened.first_issued_at
    try:
        state = _seal(call, outcome.journal.to_json(), this_round.number, first_issued_at)
    except (StateRejected, StateTooLarge) as error:
        return this_round.error_reply(unsealed_state_error(call, error, outcome.requests, outcome.journal))
    except (KeyServiceError, SettingsError) as error:
        return this_round.reply_for_exception(error)
    if len(state) > LARGE_STATE:
        call.record("state_large", characters=len(state))
    return state


def save_name(this_round: Round, task_id: str, *, for_view: bool) -> str | Reply:
    """Return a state that names a parked call, or the reply that says why there is none."""
    call = this_round.call
    try:
        return _seal(call, {_OF_VIEW if for_view else _OF_CLIENT: task_id}, 1, None)
    except (KeyServiceError, SettingsError) as error:
        return this_round.error_reply(client_error(call, error, ""))  # the table has the steps


def _seal(call: FeatureCall, payload: Mapping[str, Any], number: int, first_issued_at: int | None) -> str:
    """Return a token. Raises as `RequestStateCodec.seal`, and SettingsError."""
    codec = call.context.ports.state_codec()
    return codec.seal(call.binding, payload, round=number, first_issued_at=first_issued_at)
