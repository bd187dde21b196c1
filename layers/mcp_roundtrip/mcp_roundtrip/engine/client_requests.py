"""The requests to a client other than elicitations: sampling, roots, and namespaced ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from mcp_roundtrip.engine.questions import UNSET, Question, Unset
from mcp_roundtrip.engine.sampling_params import params_problem
from mcp_roundtrip.protocol import capabilities
from mcp_roundtrip.protocol.capabilities import CapabilityPath

Message = Mapping[str, Any]

_NAMESPACED: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+/[A-Za-z0-9][A-Za-z0-9._/-]*")
_RESERVED_LABELS: Final = frozenset({"modelcontextprotocol", "mcp"})


@dataclass(frozen=True, slots=True)
class Sampled:
    """The CreateMessageResult of the client's model. `content` is a content block or a list of them."""

    role: str
    content: Any
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text of all text blocks."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block["text"] for block in blocks if block.get("type") == "text")


class Sample(Question[Sampled], Struct, frozen=True):
    """Send `sampling/createMessage` to the client's model.

    `messages` is a prompt or a list of SamplingMessages. `options` are further params under their names in
    the MCP schema (`systemPrompt`, `temperature`, `modelPreferences`, `tools`, ...). Raises DefinitionError
    for params that the schema does not allow.
    """

    key: str
    messages: str | Sequence[Message]
    max_tokens: int
    options: Mapping[str, Any] = field(default_factory=dict)
    default: Sampled | Unset = UNSET

    def __post_init__(self) -> None:
        if problem := params_problem(self.params()):
            from mcp_roundtrip.engine import usage_errors  # not loaded by correct code

            raise usage_errors.sampling_params(self.key, problem)

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

    def parse_response(self, raw: Any) -> Sampled:
        return Sampled(raw["role"], raw["content"], raw["model"], raw.get("stopReason"))


@dataclass(frozen=True, slots=True)
class Root:
    """A root that the client exposes."""

    uri: str
    name: str | None = None


class ListRoots(Question[tuple[Root, ...]], Struct, frozen=True):
    """Send `roots/list`."""

    key: str = "roots"
    default: tuple[Root, ...] | Unset = UNSET

    @property
    def method(self) -> str:
        return "roots/list"

    def params(self) -> dict[str, Any]:
        return {}

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ROOTS,)

    def parse_response(self, raw: Any) -> tuple[Root, ...]:
        return tuple(Root(root["uri"], root.get("name")) for root in raw["roots"])


def _is_namespaced(name: str) -> bool:
    return bool(_NAMESPACED.fullmatch(name)) and name.partition("/")[0].split(".")[1] not in _RESERVED_LABELS


class NamespacedRequest(Question[Mapping[str, Any]], Struct, frozen=True):
    """Send a request outside of the core protocol, such as `com.example/approval`. Experimental.

    The client has to declare the name in its `extensions`.
    """

    is_namespaced: ClassVar[bool] = True

    key: str
    name: str
    arguments: Mapping[str, Any]
    default: Mapping[str, Any] | Unset = UNSET

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _is_namespaced(self.name):
            from mcp_roundtrip.engine import usage_errors  # not loaded by correct code

            raise usage_errors.namespaced_request_name(self.key, self.name)

    def is_user_only(self) -> bool:
        return True  # often an approval, which no client has a reason to give before it is asked

    @property
    def method(self) -> str:
        return self.name

    def params(self) -> dict[str, Any]:
        return dict(self.arguments)

    def needs(self) -> Sequence[CapabilityPath]:
        return (("extensions", self.name),)

    def parse_response(self, raw: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = raw
        return answer
