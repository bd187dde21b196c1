"""FastMCP's client; with `fastmcp_tasks`, if that is installed, it follows tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import fastmcp
import lines
from fastmcp.client.elicitation import ElicitResult


async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
    given = await asyncio.to_thread(lines.ask, lines.plain(params))
    return ElicitResult(**given)


class FastMcp:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        if options["tasks"]:
            import fastmcp_tasks  # noqa: F401  # once it is imported, the client follows tasks
        handler = {"elicitation_handler": answer} if options["asks"] else {}
        mode = {"mode": "legacy"} if options["initialize"] else {}
        self.stack = AsyncExitStack()
        client: Any = fastmcp.Client(options["url"], **handler, **mode)
        self.client = await self.stack.enter_async_context(client)
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

    async def close(self) -> None:
        await self.stack.aclose()


driver = FastMcp()
