from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lines
from agents.mcp import MCPServerStreamableHttp


class OpenAiAgents:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.server = MCPServerStreamableHttp({"url": options["url"]})
        await self.server.connect()
        return {}

    async def list(self) -> list[Any]:
        return list(await self.server.list_tools())

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return lines.called(await self.server.call_tool(tool, dict(arguments)))

    async def close(self) -> None:
        await self.server.cleanup()


driver = OpenAiAgents()
