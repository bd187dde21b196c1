"""The MCP toolset of pydantic-ai: it returns what its agent gives to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lines
from fastmcp.client.elicitation import ElicitResult
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.mcp import MCPToolset


async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
    return ElicitResult(**await lines.ask(params))


class PydanticAi(lines.OpenClient):
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        handler: Any = {"elicitation_handler": answer} if options["asks"] else {}
        toolset: MCPToolset[Any] = MCPToolset(options["url"], **handler)
        self.toolset = await self.open(toolset)
        return {}

    async def list(self) -> list[Any]:
        return list(await self.toolset.list_tools())

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            result = await self.toolset.direct_call_tool(tool, dict(arguments))
        except ModelRetry as error:  # a tool's error, for the model
            return {"text": error.message, "structured": None, "is_error": True, "meta": {}}
        structured = result if isinstance(result, dict) else None
        return {"text": str(result), "structured": structured, "is_error": False, "meta": {}}


driver = PydanticAi()
