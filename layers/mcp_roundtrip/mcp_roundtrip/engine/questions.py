"""The base class of the questions that a tool can ask its client, and the marker for a missing default."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from mcp_roundtrip.engine.inputs import InputRequest
from mcp_roundtrip.protocol.capabilities import CapabilityPath

T = TypeVar("T")


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""No default was given; None may be a default."""


DEFAULT_POLL_INTERVAL_MS: Final = 2_000
"""The default time between two calls of the `done` of a URL elicitation."""


# Not an ABC, because its subclasses are Structs, which have another metaclass. mypy finds a missing method.
class Question(Generic[T]):
    """A server-to-client request with a key of the author's choice and, optionally, a default."""

    key: str
    default: T | Unset
    trusts_answer: ClassVar[bool] = True
    """Whether the client's answer is the result. False if the server itself checks what happened."""
    is_namespaced: ClassVar[bool] = False
    """Whether the request is outside of the core protocol."""

    @property
    def has_default(self) -> bool:
        """Whether the author gave a default."""
        return not isinstance(self.default, Unset)

    def is_user_only(self) -> bool:
        """Return whether an answer counts only after the client was sent this question."""
        return False

    @property
    @abstractmethod
    def method(self) -> str:
        """The JSON-RPC method."""

    @abstractmethod
    def params(self) -> dict[str, Any]:
        """Return the params of the request, as the author wrote the question."""

    @abstractmethod
    def needs(self) -> Sequence[CapabilityPath]:
        """Return the client capabilities that the request requires."""

    @abstractmethod
    def parse_response(self, raw: Any) -> T:
        """Return the typed answer in an input response that `read_response` returned.

        Raises InvalidAnswer (ask again), ElicitationDeclined or ElicitationCancelled.
        """

    def request(self) -> InputRequest:
        """Return the input request of this question."""
        return InputRequest.from_params(self.method, self.params())

    def journal_value(self, raw: Any) -> Any:
        """Return the part of an input response to journal: everything except `_meta`."""
        return {name: member for name, member in raw.items() if name != "_meta"}
