from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lines
import mcp_types as types
from mcp.client import Client


async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult.model_validate(await lines.ask(params))


class PythonSdk(lines.OpenClient):
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        callback = answer if options["asks"] else None
        mode = "legacy" if options["initialize"] else "auto"
        client = Client(options["url"], elicitation_callback=callback, mode=mode)
        self.client = await self.open(client)
        return {"protocol": self.client.protocol_version}

    async def list(self) -> list[Any]:
        return (await self.client.list_tools()).tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return lines.called(await self.client.call_tool(tool, dict(arguments)))


driver = PythonSdk()
