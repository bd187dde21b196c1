"""A tool's result: outputSchema by the return annotation, content and structuredContent by the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import cached_property
from inspect import Signature, isclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from mcp_roundtrip.arguments.plain_json_types import json_text
from mcp_roundtrip.arguments.signature import (
    function_name,
    is_alias,
    resolve_type_hints,
    type_name,
    unwrap_alias,
)
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.protocol.strict_json import has_half_of_a_pair

if TYPE_CHECKING:
    from mcp_roundtrip.content.structured_output import StructuredOutput


class ContentBlock:
    """The base class of `blocks`, whose dataclasses take 3 ms to create."""

    __slots__ = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the block as JSON (server/tools, "Tool Result"). Raises UsageError."""
        raise NotImplementedError


_UNTYPED = (Signature.empty, Any, object, list, tuple)
"""Annotations that do not say whether the function returns content blocks or data."""

_UNION = (Union, UnionType)
_SEQUENCE = (list, tuple)


class _Kind(Enum):
    UNTYPED = "by the value"
    CONTENT = "content blocks, text or nothing"
    STRUCTURED = "by the outputSchema"


class Output(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The outputSchema of a function and the serialization of its results."""

    name: str
    annotation: Any
    kind: _Kind

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Output:
        """Read the return annotation of `function`. Raises DefinitionError."""
        name = function_name(function)
        annotation = return_type(function, "Text, Image, Audio, ResourceLink or EmbeddedResource")
        if annotation in _UNTYPED:
            return cls(name, annotation, _Kind.UNTYPED)
        if _is_content(annotation):
            return cls(name, annotation, _Kind.CONTENT)
        if _mentions(annotation, _is_block):
            raise DefinitionError(
                f"{name}: the return type {type_name(annotation)} mixes content blocks with structured "
                "values; return either blocks, str and None, or a model"
            )
        return cls(name, annotation, _Kind.STRUCTURED)

    def json_schema(self) -> dict[str, Any] | None:
        """Return the `outputSchema`, built once, or None. Do not change it. Raises DefinitionError."""
        return self._types.json_schema if self.kind is _Kind.STRUCTURED else None

    def dump(self, value: Any) -> dict[str, Any]:
        """Return the members of a result that hold a value: `content`, and for data `structuredContent`.

        With an outputSchema every value is structured, also None and text, as the specification demands.
        Raises UsageError, which names the place and quotes no value.
        """
        if self.kind is _Kind.STRUCTURED:
            return self._structured(value)
        blocks = _blocks(value, text_alone=self.kind is _Kind.CONTENT)
        if self.kind is _Kind.CONTENT and (
            blocks is None or (value is None and not _mentions(self.annotation, _is_none))
        ):
            kind = "None" if value is None else type(value).__name__
            raise UsageError(
                f"{self.name} returned {kind}; return {type_name(self.annotation)}, as annotated"
            )
        return self._structured(value) if blocks is None else {"content": blocks}

    def _structured(self, value: Any) -> dict[str, Any]:
        if (text := json_text(value, self.annotation)) is not None:
            data = msgspec.json.decode(text)
        elif isinstance(value, _SEQUENCE) and any(isinstance(item, ContentBlock) for item in value):
            raise UsageError(
                f"{self.name} returned content blocks as data, or beside data; return only blocks and text, "
                "and annotate `-> list`"
            )
        elif self.kind is _Kind.STRUCTURED:
            data, text = self._types.to_json(value)
        else:
            _refuse_foreign(self.name, value)
            data, text = self._types.untyped_to_json(value)
        # Without `text_block`, which checks the text: it was UTF-8.
        return {"content": [{"type": "text", "text": text}], "structuredContent": data}

    @cached_property
    def _types(self) -> StructuredOutput:
        from mcp_roundtrip.content.structured_output import StructuredOutput  # imports pydantic

        return StructuredOutput(self.name, self.annotation)


def return_type(function: Callable[..., Any], content: str) -> Any:
    """Return the return annotation of `function`, which may hold the types `content`.

    Raises DefinitionError for content of other packages.
    """
    annotation = resolve_type_hints(function).get("return", Signature.empty)
    if _mentions(annotation, _is_foreign):
        raise DefinitionError(
            f"{function_name(function)}: the return type {type_name(annotation)} has content that is not "
            f"this package's; import {content} from mcp_roundtrip"
        )
    return annotation


def untyped_data(name: str, value: Any) -> Any:
    """Return the value of the function `name` as JSON data. Raises UsageError, which quotes no value."""
    return Output(name, Any, _Kind.UNTYPED)._structured(value)["structuredContent"]


def text_block(text: str) -> dict[str, Any]:
    """Return `TextContent`. Raises UsageError for half of a surrogate pair."""
    check_text("Text.text", text)
    return {"type": "text", "text": text}


def check_text(where: str, text: str) -> None:
    """Raise UsageError for half of a surrogate pair, which UTF-8 cannot encode."""
    if has_half_of_a_pair(text):
        raise UsageError(f"{where} must be text without half of a surrogate pair")


def _blocks(value: Any, *, text_alone: bool) -> list[dict[str, Any]] | None:
    if value is None:
        return []
    if isinstance(value, str):
        return [text_block(value)]
    if isinstance(value, ContentBlock):
        return [value.to_wire()]
    if not isinstance(value, _SEQUENCE) or not all(isinstance(item, (str, ContentBlock)) for item in value):
        return None
    if text_alone or any(isinstance(item, ContentBlock) for item in value):
        return [text_block(item) if isinstance(item, str) else item.to_wire() for item in value]
    return None  # without blocks or an annotation, a list of strings is data


def _is_content(annotation: Any, *, item: bool = False) -> bool:
    """Return whether the type is None, str, a block, a union of these, or a list or tuple with blocks."""
    annotation = unwrap_alias(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_content(arguments[0], item=item) and not _has_serializer(arguments[1:])
    if origin in _UNION:
        return all(_is_content(member, item=item) for member in arguments)
    if origin in _SEQUENCE and not item:
        members = [member for member in arguments if member is not Ellipsis]
        return _mentions(annotation, _is_block) and all(_is_content(member, item=True) for member in members)
    return annotation is str or _is_block(annotation) or (_is_none(annotation) and not item)


def _has_serializer(metadata: Iterable[Any]) -> bool:
    """Return whether pydantic may serialize the type in another way, which a block would ignore."""
    return any(
        hasattr(each, "__get_pydantic_core_schema__")
        and type(each).__module__ != "pydantic.functional_validators"
        for each in metadata
    )


def _mentions(annotation: Any, is_meant: Callable[[Any], bool], aliases: tuple[Any, ...] = ()) -> bool:
    """Return whether a type, or one in it, is meant. It may refer to the `aliases` around it."""
    if is_alias(annotation):
        aliases, annotation = (*aliases, annotation), unwrap_alias(annotation)
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        arguments = arguments[:1]
    inner = [each for each in arguments if each not in aliases]
    return is_meant(annotation) or any(_mentions(each, is_meant, aliases) for each in inner)


def _is_none(annotation: Any) -> bool:
    return annotation in (None, NoneType)


def _is_block(annotation: Any) -> bool:
    return isclass(annotation) and issubclass(annotation, ContentBlock)


_CONTENT_OF_SDKS = (
    *("TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource"),
    *("CallToolResult", "ToolResult", "Image", "Audio"),
    *("PromptMessage", "Message", "UserMessage", "AssistantMessage", "GetPromptResult", "PromptResult"),
    *("TextResourceContents", "BlobResourceContents", "ReadResourceContents", "ReadResourceResult"),
    *("ResourceContent", "ResourceResult"),
)
"""Types of other packages. Most would be written as data: the model would read the Base64 of an image."""


def _refuse_foreign(name: str, value: Any) -> None:
    """Raise UsageError for content of other packages that the function `name` returned."""
    for each in value if isinstance(value, _SEQUENCE) else (value,):
        if _is_foreign(kind := type(each)):
            package = kind.__module__.partition(".")[0]
            raise UsageError(
                f"{name} returned {kind.__name__} of {package}, which is not this package's content; "
                "import its counterpart from mcp_roundtrip"
            )


def _is_foreign(annotation: Any) -> bool:
    return (
        isclass(annotation)
        and annotation.__name__ in _CONTENT_OF_SDKS
        and annotation.__module__.partition(".")[0] in ("mcp", "mcp_types", "fastmcp")
    )
