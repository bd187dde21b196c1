"""The channels of a call: the ways in which a question can reach somebody who answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field

from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    CapabilityPath,
    declares,
    missing_capabilities,
)

Channel = Literal["client", "app", "page", "model", "default"]
"""The protocol's own input requests ("client"), and the fallbacks (`server.options.Fallback`)."""

ORDER: Final[tuple[Channel, ...]] = ("model", "client", "app", "page")
"""A pass asks through the first of these channels that has a request. A default needs no request.

The model comes first: its answers arrive in a new call, which repeats them and has no others.
"""

_CARRIED: Final[Mapping[Channel, frozenset[CapabilityPath]]] = {
    "app": frozenset({ELICITATION_FORM, ELICITATION_URL}),
    "page": frozenset({ELICITATION_FORM, ELICITATION_URL}),
    "model": frozenset({ELICITATION_FORM}),
}
"""What each fallback can carry, as the capabilities that a client would need."""

_ELICITATION: Final[CapabilityPath] = ("elicitation",)


class Channels(Struct, frozen=True):
    """The channels that this call can use.

    `declared` are the capabilities with which the client answers input requests, `fallbacks` the usable
    fallbacks in the author's order.
    """

    declared: Mapping[str, Any]
    fallbacks: tuple[Channel, ...] = ()

    def choose(
        self, needs: Sequence[CapabilityPath], *, has_default: bool, needs_user: bool
    ) -> Channel | None:
        """Return the first channel that can carry a question with these needs; None if there is none.

        `needs_user`: only the user may answer it, so a model cannot pass the answer on.
        """
        if not missing_capabilities(self.declared, needs):
            return "client"
        for fallback in self.fallbacks:
            if fallback == "default":
                if has_default:
                    return fallback
            elif _CARRIED[fallback].issuperset(needs) and not (fallback == "model" and needs_user):
                return fallback
        return None

    def supports(self, capability: CapabilityPath) -> bool:
        """Return whether a question that needs this capability reaches somebody."""
        return declares(self.declared, capability) or any(
            capability in _CARRIED[fallback] or capability == _ELICITATION
            for fallback in self.fallbacks
            if fallback != "default"
        )


class ClientInputs(Struct, frozen=True):
    """The input responses of a pass, and the channels through which it can ask.

    - `responses` are the responses to consider, by key.
    - `is_resumed` says whether the call has begun before: in an earlier round, or as a stored call.
    - `find_channels` returns the channels; most passes ask nothing and need none.
    - `model_responses` are the responses that a model passed on, by key. They count for questions of the
      channel "model" only.
    - `response_channels` are the channels of responses that came through another one than the client, by key.
    - `polls_urls` says whether the pass waits for a URL interaction that is not complete.
    """

    responses: Mapping[str, Any]
    is_resumed: bool
    find_channels: Callable[[], Channels]
    model_responses: Mapping[str, Any] = field(default_factory=dict)
    polls_urls: bool = True
    response_channels: Mapping[str, str] = field(default_factory=dict)

    @property
    def channels(self) -> Channels:
        """The channels through which the pass can ask."""
        return self.find_channels()
