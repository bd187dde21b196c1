"""The codec of a process of its own: `start` makes it, and the other functions use it."""

from typing import Any

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state.codec import RequestStateCodec
from support.kms_clients import Deployment, client
from support.tokens import BINDING, NOW

_codecs: list[RequestStateCodec] = []


def start(deployment: Deployment, endpoint: str) -> None:
    _codecs[:] = [deployment.environment(client(endpoint), lambda: NOW)]


def seal(payload: Any, number: int, since: int | None) -> str:
    return _codecs[0].seal(BINDING, payload, round=number, first_issued_at=since)


def open_state(token: str) -> Any:
    """Return the payload, the round and the time of the first one, or the reason of a refusal."""
    try:
        state = _codecs[0].open(BINDING, token)
    except StateRejected as refused:
        return refused.reason
    return state.payload, state.round, state.first_issued_at
