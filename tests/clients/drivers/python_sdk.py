from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import lines
import mcp_types as types
from mcp.client import Client


async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    given = await asyncio.to_thread(lines.ask, lines.plain(params))
    return types.ElicitResult.model_validate(given)


class PythonSdk:
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        callback = answer if options["asks"] else None
        mode = "legacy" if options["initialize"] else "auto"
        self.stack = AsyncExitStack()
        client = Client(options["url"], elicitation_callback=callback, mode=mode)
        self.client = await self.stack.enter_async_context(client)
        return {"protocol": self.client.protocol_version}

    async def list(self) -> list[Any]:
        return (await self.client.list_tools()).tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return lines.called(await self.client.call_tool(tool, dict(arguments)))

    async def close(self) -> None:
        await self.stack.aclose()


driver = PythonSdk()
