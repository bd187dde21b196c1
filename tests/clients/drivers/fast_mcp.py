"""FastMCP's client; with `fastmcp_tasks`, if that is installed, it follows tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fastmcp
import lines
from fastmcp.client.elicitation import ElicitResult


async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
    return ElicitResult(**await lines.ask(params))


class FastMcp(lines.OpenClient):
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        if options["tasks"]:
            import fastmcp_tasks  # noqa: F401  # once it is imported, the client follows tasks
        handler = {"elicitation_handler": answer} if options["asks"] else {}
        mode = {"mode": "legacy"} if options["initialize"] else {}
        client: Any = fastmcp.Client(options["url"], **handler, **mode)
        self.client = await self.open(client)
        return {"protocol": self.client.session.protocol_version}

    async def list(self) -> list[Any]:
        return list(await self.client.list_tools())

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        result = await self.client.call_tool(tool, dict(arguments), raise_on_error=False)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        return {
            "text": text,
            "structured": result.structured_content,
            "is_error": result.is_error,
            "meta": result.meta or {},
        }


driver = FastMcp()
