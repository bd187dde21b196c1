"""The questions of a tool, the channels that reach somebody, and the requests that a pass ends with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec import Struct, UnsetType, field
from msgspec.structs import replace

from mcp_roundtrip.engine.journal import Entry, Fingerprint
from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    CapabilityPath,
    declares,
    missing_capabilities,
)
from mcp_roundtrip.protocol.strict_json import digest

Channel = Literal["client", "app", "page", "model", "default"]
"""The protocol's own input requests ("client"), and the fallbacks (`server.options.Fallback`)."""

ORDER: Final[tuple[Channel, ...]] = ("model", "client", "app", "page")
"""A pass asks through the first of these channels that has a request. The model comes first: its answers
arrive in a new call, which repeats them and has no others."""

_CARRIED: Final[Mapping[Channel, frozenset[CapabilityPath]]] = {
    "app": frozenset({("elicitation",), ELICITATION_FORM, ELICITATION_URL}),
    "page": frozenset({("elicitation",), ELICITATION_FORM, ELICITATION_URL}),
    "model": frozenset({("elicitation",), ELICITATION_FORM}),
    "default": frozenset(),
}
"""What each fallback can carry, as the capabilities that a client would need."""


class Channels(Struct, frozen=True):
    """The channels of a call: the client's capabilities, and the usable fallbacks in the author's order."""

    declared: Mapping[str, Any]
    fallbacks: tuple[Channel, ...] = ()

    def choose(
        self, needs: Sequence[CapabilityPath], *, has_default: bool, needs_user: bool
    ) -> Channel | None:
        """Return the first channel that can carry a question; None if there is none."""
        if not missing_capabilities(self.declared, needs):
            return "client"
        for fallback in self.fallbacks:
            if fallback == "default":
                if has_default:
                    return fallback
            elif _CARRIED[fallback].issuperset(needs) and not (fallback == "model" and needs_user):
                return fallback  # a model cannot pass on what only the user may answer
        return None

    def supports(self, capability: CapabilityPath) -> bool:
        """Return whether a question that needs this capability reaches somebody."""
        is_carried = any(capability in _CARRIED[fallback] for fallback in self.fallbacks)
        return is_carried or declares(self.declared, capability)


class ClientInputs(Struct, frozen=True):
    """The input responses of a pass by key, and the channels through which it can ask.

    - `is_resumed`: whether the call has begun before: in an earlier round, or as a stored call.
    - `find_channels` returns the channels (see `server.pass_and_reply`); most passes ask nothing.
    - `model_responses`: those that a model passed on.
    - `response_channels`: the channels of those that came through another channel than the client.
    - `urls_may_be_visited`: an earlier call, of which nothing is kept, may have sent the user to the URLs. So
      `done` decides about each URL that the client can show, and the pass does not wait for it.
    """

    responses: Mapping[str, Any]
    is_resumed: bool
    find_channels: Callable[[], Channels]
    model_responses: Mapping[str, Any] = field(default_factory=dict)
    urls_may_be_visited: bool = False
    response_channels: Mapping[str, str] = field(default_factory=dict)


T = TypeVar("T")

DEFAULT_POLL_INTERVAL_MS: Final = 2_000
"""The default time between two calls of the `done` of a URL elicitation."""

_REFUSED: Final = "\n\nThe previous answer was not accepted. "
"""Separates the author's message from the reason why an answer was refused."""


# Not an ABC, because its subclasses are Structs, which have another metaclass. mypy finds a missing method.
class Question(Generic[T]):
    """A server-to-client request with a key and, optionally, a default. UNSET is none: None may be one."""

    key: str
    default: T | UnsetType

    @property
    def has_default(self) -> bool:
        return not isinstance(self.default, UnsetType)

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
        """Return the answer. Raises InvalidAnswer (ask again), ElicitationDeclined, ElicitationCancelled."""

    def request(self) -> InputRequest:
        params = self.params()
        rest = {name: value for name, value in params.items() if name != "message"}
        fingerprint = Fingerprint(
            message=digest("mcp-rs/v1/message", params.get("message"), size=12),
            form=digest("mcp-rs/v1/form", [self.method, rest], size=12),
        )
        return InputRequest(self.method, params, fingerprint)

    def journal_value(self, raw: Any) -> Any:
        """Return the part of an input response to journal: everything except `_meta`."""
        return {name: member for name, member in raw.items() if name != "_meta"}


class InputRequest(Struct, frozen=True):
    """A question as it is sent through a channel. `has_consent`: the user agreed to open its URL."""

    method: str
    params: Mapping[str, Any]
    fingerprint: Fingerprint
    has_consent: bool = False
    channel: Channel = "client"

    def after_rejection(self, reason: str) -> InputRequest:
        """Return a form with the reason in its message; its fingerprint stays the same."""
        message = f"{self.params['message']}{_REFUSED}{reason}"
        return replace(self, params={**self.params, "message": message})

    def to_wire(self) -> dict[str, Any]:
        return {"method": self.method, "params": dict(self.params)}


def own_message(request: Mapping[str, Any]) -> str:
    """Return the author's message, without the reason of a refusal, which may quote the refused answer."""
    return str(request["params"]["message"]).partition(_REFUSED)[0]


class InputRequests(Struct):
    """The outstanding input requests of a pass.

    A pass asks through one channel at a time. The requests of other channels are withheld: a later pass
    reaches their questions again.

    - `url_consents`: the answers to URLs for which the task that the call becomes polls.
    - `refused`: the reason, without values, of each response that was refused, by key.
    - `user_only_reached`: whether the code has reached a question that the user must be shown.
    """

    _by_key: dict[str, InputRequest] = {}
    url_consents: dict[str, Entry] = {}
    refused: dict[str, str] = {}
    user_only_reached: bool = False

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def items(self) -> Iterator[tuple[str, InputRequest]]:
        """Return the requests of the pass's channel, in the order in which they were added."""
        channel = self.channel
        return ((key, request) for key, request in self._by_key.items() if request.channel == channel)

    @property
    def channel(self) -> Channel:
        return min((request.channel for request in self._by_key.values()), key=ORDER.index, default="client")

    def add(self, key: str, request: InputRequest) -> None:
        self._by_key[key] = request

    def withdraw(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._by_key.pop(key, None)

    def needs_user(self, channel: Channel) -> bool:
        """Return whether this channel, or an earlier one, shows a request: one without consent."""
        shown = ORDER[: ORDER.index(channel) + 1]
        return any(not request.has_consent and request.channel in shown for request in self._by_key.values())

    @property
    def waits_for_urls_only(self) -> bool:
        """Whether the pass has requests, and all of them are for URLs that the user agreed to open."""
        return bool(self._by_key) and not self.needs_user(self.channel)

    def fingerprints(self) -> dict[str, Fingerprint]:
        asked = {key: request.fingerprint for key, request in self.items()}
        left = {key: entry.fingerprint for key, entry in self.url_consents.items() if entry.fingerprint}
        return asked | left
