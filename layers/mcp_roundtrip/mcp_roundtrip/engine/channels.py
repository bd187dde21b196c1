"""The channels of a call: the ways in which a question can reach somebody who answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    CapabilityPath,
    declares,
    missing_capabilities,
)

if TYPE_CHECKING:
    from typing import Protocol

    class Askable(Protocol):
        """What the choice of a channel depends on: `engine.questions.Question`."""

        @property
        def has_default(self) -> bool: ...
        def needs(self) -> Sequence[CapabilityPath]: ...


Channel = Literal["client", "app", "page", "model", "default"]
"""The protocol's own input requests ("client"), and the fallbacks (`server.options.Fallback`)."""

_CARRIED: Final[Mapping[Channel, frozenset[CapabilityPath]]] = {
    "app": frozenset({ELICITATION_FORM, ELICITATION_URL}),
    "page": frozenset({ELICITATION_FORM, ELICITATION_URL}),
    "model": frozenset({ELICITATION_FORM}),
}
"""What each fallback can carry, as the capabilities that a client would need."""


class Channels(Struct, frozen=True):
    """The channels that this call can use.

    `declared` are the capabilities with which the client answers input requests, `fallbacks` the usable
    fallbacks in the author's order.
    """

    declared: Mapping[str, Any]
    fallbacks: tuple[Channel, ...] = ()

    def choose(self, question: Askable, *, needs_user: bool) -> Channel | None:
        """Return the first channel that can carry the question; None if there is none.

        `needs_user`: only the user may answer it, so a model cannot pass the answer on.
        """
        needs = question.needs()
        if not missing_capabilities(self.declared, needs):
            return "client"
        for fallback in self.fallbacks:
            if fallback == "default":
                if question.has_default:
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


_ELICITATION: Final[CapabilityPath] = ("elicitation",)
