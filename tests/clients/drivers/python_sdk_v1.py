"""The client of the official Python SDK before version 2: it opens with `initialize`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import lines
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Any]:
    async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as opened:
        await opened.initialize()
        yield opened


class PythonSdkV1(lines.OpenClient):
    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.client = await self.open(session(options["url"]))
        return {}

    async def list(self) -> list[Any]:
        return (await self.client.list_tools()).tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return lines.called(await self.client.call_tool(tool, dict(arguments)))


driver = PythonSdkV1()
