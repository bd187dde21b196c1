"""The params of `sampling/createMessage` (schema 2026-07-28), which authors write as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert

_Fraction = Annotated[float, Meta(ge=0, le=1)] | UnsetType
_Object = dict[str, Any] | UnsetType
_String = str | UnsetType
_Boolean = bool | UnsetType

MAX_TOKENS: Final = 2**53 - 1
"""The largest number of tokens: the integers of JavaScript end here."""


class _Annotations(Struct, rename="camel"):
    audience: list[Literal["user", "assistant"]] | UnsetType = UNSET
    priority: _Fraction = UNSET
    last_modified: _String = UNSET


class _Block(Struct, kw_only=True, tag_field="type", rename="camel"):
    annotations: _Annotations | UnsetType = UNSET


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
    is_error: _Boolean = UNSET


_Content = _Text | _Image | _Audio | _ToolUse | _ToolResult


class _Message(Struct):
    role: Literal["user", "assistant"]
    content: _Content | list[_Content]


class _ToolAnnotations(Struct, rename="camel"):
    title: _String = UNSET
    read_only_hint: _Boolean = UNSET
    destructive_hint: _Boolean = UNSET
    idempotent_hint: _Boolean = UNSET
    open_world_hint: _Boolean = UNSET


class _InputSchema(Struct):
    type: Literal["object"]


class _Tool(Struct, rename="camel"):
    name: str
    input_schema: _InputSchema
    title: _String = UNSET
    description: _String = UNSET
    annotations: _ToolAnnotations | UnsetType = UNSET


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
    metadata: _Object = UNSET
    tools: list[_Tool] | UnsetType = UNSET
    toolChoice: _ToolChoice | UnsetType = UNSET
    meta: _Object = UNSET


def params_problem(params: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the params, and where, or None."""
    try:
        convert(params, _Params)
    except ValidationError as error:
        return str(error)
    return None
