from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import lines
import mcp.types as types
from strands.tools.mcp import MCPClient


async def answer(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult.model_validate(await lines.ask(params))


class Strands:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.client = MCPClient(
            url=options["url"],
            elicitation_callback=answer if options["asks"] else None,
            tasks_config={} if options["tasks"] else None,
        )
        await asyncio.to_thread(self.client.start)
        return {}

    async def list(self) -> list[Any]:
        tools = await asyncio.to_thread(self.client.list_tools_sync)
        return [tool.mcp_tool for tool in tools]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        result = await self.client.call_tool_async("1", tool, dict(arguments))
        return {
            "text": "\n".join(block["text"] for block in result["content"] if "text" in block),
            "structured": result.get("structuredContent"),
            "is_error": result["status"] == "error",
            "meta": result.get("metadata") or {},
        }

    async def close(self) -> None:
        await asyncio.to_thread(self.client.stop, None, None, None)


driver = Strands()
