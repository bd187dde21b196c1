"""Print tools and results."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_roundtrip_tools.call.fields import Field, fields_of

WIDTH: Final = 100


def describe_tools(tools: Iterable[Mapping[str, Any]]) -> str:
    """Return the tools with their arguments and the first line of their descriptions."""
    return "\n".join(_describe(tool) for tool in tools)


def _describe(tool: Mapping[str, Any]) -> str:
    arguments = " ".join(map(_argument, fields_of(tool.get("inputSchema") or {})))
    summary = str(tool.get("description") or "").strip().partition("\n")[0]
    text = textwrap.fill(summary, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"{tool['name']} {arguments}".rstrip() + (f"\n{text}" if summary else "")


def _argument(field: Field) -> str:
    kind = "|".join(title for _, title in field.options) or field.kind
    return f"{field.name}={kind}" if field.is_required else f"[{field.name}={kind}]"


def describe_result(result: Mapping[str, Any]) -> str:
    """Return a result as text: its structured content, otherwise its blocks."""
    if result.get("structuredContent") is not None and not result.get("isError"):
        return json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)
    return "\n".join(_block(block) for block in result.get("content") or ())


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return block.get("text") or ""
        case "image" | "audio":
            return (
                f"[{block['type']}, {block.get('mimeType')}, {len(block.get('data') or '') * 3 // 4:,} bytes]"
            )
        case "resource_link":
            return f"{block.get('name', '')} {block.get('uri', '')}".strip()
        case "resource":
            resource = block.get("resource") or {}
            return str(resource.get("text") or f"[resource {resource.get('uri')}]")
    return json.dumps(block, ensure_ascii=False)
