"""LlamaIndex's MCP tools: they open a session for each call, and give the model the whole result as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lines
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


class LlamaIndex:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        tools = await McpToolSpec(client=BasicMCPClient(options["url"])).to_tool_list_async()
        self.tools = {tool.metadata.name: tool for tool in tools}
        return {}

    async def list(self) -> list[Any]:
        parameters = {name: tool.metadata.get_parameters_dict() for name, tool in self.tools.items()}
        return [{"name": name, "inputSchema": schema} for name, schema in parameters.items()]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        output = await self.tools[tool].acall(**arguments)
        return {**lines.called(output.raw_output), "text": output.content}

    async def close(self) -> None:
        """Nothing is open between calls."""


driver = LlamaIndex()
