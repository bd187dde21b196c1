"""Agno's MCP tools, with their default timeout of ten seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agno.tools.mcp import MCPTools


class Agno:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.tools = MCPTools(url=options["url"], transport="streamable-http")
        await self.tools.connect()
        return {}

    async def list(self) -> list[Any]:
        functions = self.tools.functions.values()
        return [{"name": each.name, "inputSchema": each.parameters} for each in functions]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        result = await self.tools.functions[tool].entrypoint(**arguments)
        metadata = result.metadata or {}
        return {
            "text": result.content,
            "structured": metadata.get("structured_content"),
            "is_error": result.content.startswith("Error from MCP tool"),
            "meta": metadata.get("meta") or {},
        }

    async def close(self) -> None:
        await self.tools.close()


driver = Agno()
