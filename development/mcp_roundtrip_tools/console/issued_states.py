"""The states that recorded responses contain: who got a state, and from which one a damaged one was made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip_tools.console.damage import part_at
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import HttpExchange, request_message

_STATE: Final = re.compile(rb'"requestState": ?"([A-Za-z0-9_.-]+)"')

_TOOL: Final = ("name", "uri")
"""The members of params that name what a request acts on."""

MAX_DIFFERENCES: Final = 8
"""States that differ in more characters are not compared."""


@dataclass(frozen=True, slots=True)
class IssuedState:
    """A state in the response to a request."""

    token: str
    exchange: HttpExchange

    @property
    def call(self) -> dict[str, Any]:
        """The request that got it: its id, its method and what it named."""
        message = request_message(self.exchange)
        params = message.get("params")
        members = params if isinstance(params, dict) else {}
        name = next((members[key] for key in _TOOL if isinstance(members.get(key), str)), None)
        return {"exchangeId": self.exchange.id, "method": message.get("method"), "tool": name}


def find_issued(token: str, recorder: RunRecorder) -> IssuedState | None:
    """Return where a state was issued; None if no recorded response contains it."""
    return next((each for each in _issued(recorder) if each.token == token), None)


def describe_damage(token: str, recorder: RunRecorder) -> str:
    """Return a sentence about the characters in which a token differs from a state that was issued; or ""."""
    for issued in _issued(recorder):
        if len(issued.token) == len(token):
            pairs = enumerate(zip(issued.token, token, strict=True))
            changed = [position for position, (before, after) in pairs if before != after]
            if 0 < len(changed) <= MAX_DIFFERENCES:
                return _sentence(issued.token, changed)
    return ""


def _sentence(token: str, changed: list[int]) -> str:
    parts = dict.fromkeys(part_at(token, position) or "dots" for position in changed)
    positions = ", ".join(map(str, changed))
    plural = "s" if len(changed) > 1 else ""
    return f" It differs from an issued state at position{plural} {positions}: in the {', '.join(parts)}."


def _issued(recorder: RunRecorder) -> Iterator[IssuedState]:
    """Yield the states of recorded responses, the newest first."""
    for exchange in reversed(recorder.exchanges()):
        for found in _STATE.finditer(exchange.response_body):
            yield IssuedState(found[1].decode(), exchange)
