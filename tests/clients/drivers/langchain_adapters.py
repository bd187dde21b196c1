"""LangChain's MCP adapters by their default: tools that open a session for each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient


class LangChain:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        client = MultiServerMCPClient({"server": {"transport": "streamable_http", "url": options["url"]}})
        self.tools = {tool.name: tool for tool in await client.get_tools()}
        return {}

    async def list(self) -> list[Any]:
        return [{"name": name, "inputSchema": tool.args_schema} for name, tool in self.tools.items()]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        call = {"type": "tool_call", "id": "1", "name": tool, "args": dict(arguments)}
        message = await self.tools[tool].ainvoke(call)
        return {
            "text": "\n".join(block["text"] for block in message.content if block["type"] == "text"),
            "structured": (message.artifact or {}).get("structured_content"),
            "is_error": message.status == "error",
            "meta": {},
        }

    async def close(self) -> None:
        """Nothing is open between calls."""


driver = LangChain()
