"""The questions a tool can put to its client: what each sends, needs, and makes of an answer."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isclass, iscoroutine
from typing import Any, ClassVar, Final, Generic, TypeVar

from typing_extensions import is_typeddict  # typing's does not know the one that pydantic needs

from mcp_roundtrip.canonical import digest
from mcp_roundtrip.engine.journal import Fingerprint
from mcp_roundtrip.errors import (
    DefinitionError,
    ElicitationCancelled,
    ElicitationDeclined,
    InvalidAnswer,
)
from mcp_roundtrip.protocol import capabilities
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.schema.forms import Form

T = TypeVar("T")


class Unset:
    """The type of `UNSET`: no default was given (None may be one)."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


def usage_errors() -> Any:
    from mcp_roundtrip.engine import usage_errors  # for the author of a mistake

    return usage_errors


class Question(ABC, Generic[T]):
    """A server-to-client request with a key of the author's choice and, perhaps, a default."""

    key: str
    default: T | Unset
    rests_on_answer: ClassVar[bool] = True
    """Whether the client's answer decides. False where the server checks for itself what happened."""

    def is_user_only(self) -> bool:
        """Whether an answer counts only after the client was sent this question."""
        return False

    @property
    @abstractmethod
    def method(self) -> str:
        """The JSON-RPC method."""

    @abstractmethod
    def params(self) -> dict[str, Any]:
        """What the author's question looks like on the wire."""

    @abstractmethod
    def needs(self) -> Sequence[CapabilityPath]:
        """The client capabilities without which it must not be sent."""

    @abstractmethod
    def read(self, raw: Any) -> T:
        """The typed answer.

        Raises InvalidAnswer (ask again), ElicitationDeclined or ElicitationCancelled.
        """

    def fingerprint(self) -> Fingerprint:
        """What an answer to this question is an answer to."""
        params = self.params()
        message = params.pop("message", None)
        return Fingerprint(
            message=digest("mcp-rs/v1/message", message, size=12),
            form=digest("mcp-rs/v1/form", [self.method, params], size=12),
        )

    def kept(self, raw: Any) -> Any:
        """The part of an answer that is journaled: all but `_meta`."""
        if isinstance(raw, dict):
            return {name: member for name, member in raw.items() if name != "_meta"}
        return raw


class _Elicitation(Question[T]):
    message: str

    def __post_init__(self) -> None:
        if not isinstance(self.message, str):
            raise usage_errors().message_type(self.key, self.message)

    @property
    def method(self) -> str:
        return "elicitation/create"

    def kept(self, raw: Any) -> Any:
        return {name: raw[name] for name in ("action", "content") if name in raw}

    def _accepted(self, raw: Any) -> Any:
        """The content of an ElicitResult whose action is "accept"."""
        action = raw.get("action") if isinstance(raw, dict) else None
        if action == "decline":
            raise ElicitationDeclined(self.key)
        if action == "cancel":
            raise ElicitationCancelled(self.key)
        if action != "accept":
            raise InvalidAnswer("the answer has no action")
        return raw.get("content")


@dataclass(frozen=True, slots=True)
class Elicit(_Elicitation[T]):
    """Form elicitation: `model` is a flat pydantic model or dataclass, or the type of a single field.

    With `user_only`, an answer counts only after the client was sent this question, with exactly this text,
    and a model never answers it. None stands for True if `schema.forms.Form.is_confirmation`.
    """

    key: str
    message: str
    model: type[T]
    default: T | Unset = UNSET
    user_only: bool | None = None

    def __post_init__(self) -> None:
        _Elicitation.__post_init__(self)
        if self.default is not UNSET and not _may_stand_for(self.default, self.model):
            raise usage_errors().default_type(self.key, self.default, self.model)

    def _form(self) -> Form:
        try:
            return Form.of(self.model)
        except DefinitionError as error:
            raise usage_errors().form(self.key, error) from None

    def is_user_only(self) -> bool:
        return self._form().is_confirmation if self.user_only is None else self.user_only

    def params(self) -> dict[str, Any]:
        return {
            "mode": "form",
            "message": self.message,
            "requestedSchema": self._form().requested_schema,
        }

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ELICITATION_FORM,)

    def read(self, raw: Any) -> T:
        value: T = self._form().parse(self._accepted(raw))
        return value


def _may_stand_for(default: Any, model: Any) -> bool:
    """Whether a tool that expects a `model` can take this default; None says that there was no answer."""
    if default is None or not isclass(model) or is_typeddict(model):
        return True
    return isinstance(default, (int, float) if model is float else model)


_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]\S*")


POLL_INTERVAL_MS: Final = 2_000
"""The pause between two calls of `done`, unless the author says otherwise."""

MIN_POLL_INTERVAL_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ElicitUrl(_Elicitation[None]):
    """URL elicitation. `done` says whether the interaction behind the URL is complete.

    It is called every `poll_interval_ms` milliseconds (at least 1,000) while the server waits for the page,
    or once in each round if that is None.
    """

    key: str
    message: str
    url: str
    done: Callable[[], bool | Awaitable[bool]]
    default: Unset | None = UNSET
    poll_interval_ms: int | None = POLL_INTERVAL_MS
    rests_on_answer: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _Elicitation.__post_init__(self)
        if not isinstance(self.url, str) or not _URL.fullmatch(self.url):
            raise usage_errors().url(self.key, self.url)
        if not callable(self.done):
            raise usage_errors().done_type(self.key, self.done)
        interval_ms = self.poll_interval_ms
        if interval_ms is not None and (type(interval_ms) is not int or interval_ms < MIN_POLL_INTERVAL_MS):
            raise usage_errors().poll_interval(self.key, interval_ms, MIN_POLL_INTERVAL_MS)

    def params(self) -> dict[str, Any]:
        return {"mode": "url", "message": self.message, "url": self.url}

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ELICITATION_URL,)

    def read(self, raw: Any) -> None:
        self._accepted(raw)

    def kept(self, raw: Any) -> Any:
        return {"action": raw["action"]}

    def is_done(self) -> bool:
        """Call `done` in a synchronous tool. Raises what it raises, and UsageError if it is async."""
        finished = self.done()
        if iscoroutine(finished):  # a coroutine is true
            finished.close()
            raise usage_errors().done_is_async(self.key)
        return bool(finished)


@dataclass(frozen=True, slots=True)
class Sampled:
    """CreateMessageResult: what the client's model said. `content` is a block or a list of blocks."""

    role: str
    content: Any
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block["text"] for block in blocks if block.get("type") == "text")


Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sample(Question[Sampled]):
    """`sampling/createMessage`. `messages` is a prompt or SamplingMessages; `options` are further params,
    spelled as the schema spells them (`systemPrompt`, `temperature`, `modelPreferences`, `tools`, ...)."""

    key: str
    messages: str | Sequence[Message]
    max_tokens: int
    options: Mapping[str, Any] = field(default_factory=dict)
    default: Sampled | Unset = UNSET

    @property
    def method(self) -> str:
        return "sampling/createMessage"

    def params(self) -> dict[str, Any]:
        messages = self.messages
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        return {"messages": list(messages), "maxTokens": self.max_tokens, **self.options}

    def needs(self) -> Sequence[CapabilityPath]:
        needed = [capabilities.SAMPLING]
        if "tools" in self.options or "toolChoice" in self.options:
            needed.append(("sampling", "tools"))
        if self.options.get("includeContext", "none") != "none":
            needed.append(("sampling", "context"))
        return needed

    def read(self, raw: Any) -> Sampled:
        if not isinstance(raw, dict) or raw.get("role") not in ("user", "assistant"):
            raise InvalidAnswer("not a CreateMessageResult: no role")
        content = raw.get("content")
        for block in content if isinstance(content, list) else [content]:
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                raise InvalidAnswer("not a CreateMessageResult: content is no content block")
            if block["type"] == "text" and not isinstance(block.get("text"), str):
                raise InvalidAnswer("not a CreateMessageResult: a text block has no text")
        if not isinstance(raw.get("model"), str):
            raise InvalidAnswer("not a CreateMessageResult: no model")
        if not isinstance(raw.get("stopReason", ""), str):
            raise InvalidAnswer("not a CreateMessageResult: stopReason is no text")
        return Sampled(raw["role"], content, raw["model"], raw.get("stopReason"))


@dataclass(frozen=True, slots=True)
class Root:
    """A root the client exposes."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ListRoots(Question[tuple[Root, ...]]):
    """`roots/list`."""

    key: str = "roots"
    default: tuple[Root, ...] | Unset = UNSET

    @property
    def method(self) -> str:
        return "roots/list"

    def params(self) -> dict[str, Any]:
        return {}

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ROOTS,)

    def read(self, raw: Any) -> tuple[Root, ...]:
        roots = raw.get("roots") if isinstance(raw, dict) else None
        if not isinstance(roots, list):
            raise InvalidAnswer("not a ListRootsResult: no roots")
        for root in roots:
            if not isinstance(root, dict) or not isinstance(root.get("uri"), str):
                raise InvalidAnswer("not a ListRootsResult: a root has no uri")
            if not isinstance(root.get("name", ""), str):
                raise InvalidAnswer("not a ListRootsResult: a root's name is no text")
        return tuple(Root(root["uri"], root.get("name")) for root in roots)
