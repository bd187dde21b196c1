"""The requests to a client other than elicitations: sampling, roots, and namespaced ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, field
from msgspec.json import decode

from mcp_roundtrip.engine.question_channels import Question
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol import capabilities
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.constants import META_KEY
from mcp_roundtrip.protocol.strict_json import compact_json

_Fraction = Annotated[float, Meta(ge=0, le=1)] | UnsetType
_Meta = dict[Annotated[str, Meta(pattern=rf"^{META_KEY}\Z")], Any] | UnsetType
_String = str | UnsetType

MAX_TOKENS: Final = 2**53 - 1
"""The largest number of tokens: the integers of JavaScript end here."""


class _Annotations(Struct, rename="camel"):
    audience: list[Literal["user", "assistant"]] | UnsetType = UNSET
    priority: _Fraction = UNSET
    last_modified: _String = UNSET


class _Block(Struct, kw_only=True, tag_field="type", rename="camel"):
    annotations: _Annotations | UnsetType = UNSET
    meta: _Meta = field(default=UNSET, name="_meta")


class _Text(_Block, tag="text"):
    text: str


class _Image(_Block, tag="image", rename="camel"):
    data: bytes  # in JSON, Base64
    mime_type: str


class _Audio(_Block, tag="audio", rename="camel"):
    data: bytes
    mime_type: str


class _ToolUse(_Block, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class _ToolResult(_Block, tag="tool_result", rename="camel"):
    tool_use_id: str
    content: list[dict[str, Any]]
    is_error: bool | UnsetType = UNSET


_Content = _Text | _Image | _Audio | _ToolUse | _ToolResult


class _Message(Struct):
    role: Literal["user", "assistant"]
    content: _Content | list[_Content]
    meta: _Meta = field(default=UNSET, name="_meta")


class _ToolAnnotations(Struct, rename="camel"):
    title: _String = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class _InputSchema(Struct):
    type: Literal["object"]


class _Tool(Struct, rename="camel"):
    name: str
    input_schema: _InputSchema
    output_schema: dict[str, Any] | UnsetType = UNSET
    title: _String = UNSET
    description: _String = UNSET
    annotations: _ToolAnnotations | UnsetType = UNSET
    icons: list[dict[str, Any]] | UnsetType = UNSET
    meta: _Meta = field(default=UNSET, name="_meta")


class _ToolChoice(Struct):
    mode: Literal["auto", "required", "none"] | UnsetType = UNSET


class _ModelHint(Struct):
    name: _String = UNSET


class _ModelPreferences(Struct, rename="camel"):
    hints: list[_ModelHint] | UnsetType = UNSET
    cost_priority: _Fraction = UNSET
    speed_priority: _Fraction = UNSET
    intelligence_priority: _Fraction = UNSET


class _Params(Struct, rename={"meta": "_meta"}, forbid_unknown_fields=True):
    """`CreateMessageRequestParams`. The names are those of the schema: authors write them as keywords."""

    messages: list[_Message]
    maxTokens: Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
    systemPrompt: _String = UNSET
    temperature: float | UnsetType = UNSET
    stopSequences: list[str] | UnsetType = UNSET
    includeContext: Literal["none", "thisServer", "allServers"] | UnsetType = UNSET
    modelPreferences: _ModelPreferences | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    tools: list[_Tool] | UnsetType = UNSET
    toolChoice: _ToolChoice | UnsetType = UNSET
    meta: _Meta = UNSET


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

    method: ClassVar[str] = "sampling/createMessage"

    key: str
    messages: str | Sequence[Message]
    max_tokens: int
    options: Mapping[str, Any] = field(default_factory=dict)
    default: Sampled | UnsetType = UNSET

    def __post_init__(self) -> None:
        try:
            params = decode(compact_json(self.params()), type=_Params)
            problem = _tool_result_problem(params.messages)
        except (DecodeError, TypeError, ValueError) as error:  # not of the types, or not JSON
            problem = str(error)
        if problem:
            raise DefinitionError(
                f"question {self.key!r}: {problem}; write dicts as in CreateMessageRequestParams of the MCP "
                "schema, in camelCase"
            )
        if not isinstance(self.default, Sampled | UnsetType | None):
            raise DefinitionError(
                f"question {self.key!r}: default= is {type(self.default).__name__}, and the answer is a "
                'Sampled; pass one such as `Sampled("assistant", {"type": "text", "text": "None"}, "none")`'
            )

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


def _tool_result_problem(messages: Sequence[_Message]) -> str | None:
    """Return where tool uses lack their results (client/sampling, "Message Content Constraints"), or None."""
    used: list[str] = []
    for number, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, list) else [message.content]
        results = [each.tool_use_id for each in blocks if isinstance(each, _ToolResult)]
        is_mixed = results and (len(results) < len(blocks) or message.role != "user")
        if is_mixed or sorted(results) != sorted(used):
            return _RESULTS.format(number)
        used = [each.id for each in blocks if isinstance(each, _ToolUse)]
    return _RESULTS.format(len(messages)) if used else None


_RESULTS: Final = (
    "each tool_use needs its tool_result in the next message, and a user message with tool_results has "
    "nothing else - at `$.messages[{}]`"
)


@dataclass(frozen=True, slots=True)
class Root:
    """A root that the client exposes."""

    uri: str
    name: str | None = None


class ListRoots(Question[tuple[Root, ...]], Struct, frozen=True):
    """Send `roots/list`."""

    method: ClassVar[str] = "roots/list"

    key: str = "roots"
    default: tuple[Root, ...] | UnsetType = UNSET

    def params(self) -> dict[str, Any]:
        return {}

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ROOTS,)

    def parse_response(self, raw: Any) -> tuple[Root, ...]:
        return tuple(Root(root["uri"], root.get("name")) for root in raw["roots"])


class NamespacedRequest(Question[Mapping[str, Any]], Struct, frozen=True):
    """Send a request outside of the core protocol, such as `com.example/approval`. Experimental.

    The client has to declare the name in its `extensions`.
    """

    key: str
    name: str
    arguments: Mapping[str, Any]
    default: Mapping[str, Any] | UnsetType = UNSET

    def __post_init__(self) -> None:
        is_namespaced = isinstance(self.name, str) and _NAMESPACED.fullmatch(self.name)
        if not is_namespaced or self.name.partition("/")[0].split(".")[1] in _RESERVED_LABELS:
            raise DefinitionError(
                f"namespaced request {self.key!r}: {self.name!r:.200} is not a name in your own domain; "
                "write one such as 'com.example/approval'"
            )

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
        answer: Mapping[str, Any] = self.journal_value(raw)
        return answer
