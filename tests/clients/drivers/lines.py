"""The conversation between a test and a driver: one JSON object per line.

A driver reads `{"connect": …}`, `{"list": …}`, `{"call": …}` and `{"close": …}`, and answers each with
`{"done": …}` or `{"failed": …}`. While a call runs, it passes every question on as `{"asked": …}` and reads
the answer. `serve.py` runs with the interpreter of an environment and drives all its clients, one at a time:
{"connect": …} names the module of the driver. So they share the imports of mcp, which take most of the start.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Protocol


class Driver(Protocol):
    """One client. `call` returns `text`, `structured`, `is_error` and `meta` of the tool's result."""

    async def connect(self, options: Mapping[str, Any]) -> Mapping[str, Any]: ...

    async def list(self) -> list[Any]: ...

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]: ...

    async def close(self) -> None: ...


class OpenClient:
    """What drivers share whose client is open from `connect` to `close`."""

    async def open(self, client: AbstractAsyncContextManager[Any]) -> Any:
        self._stack = AsyncExitStack()
        return await self._stack.enter_async_context(client)

    async def close(self) -> None:
        await self._stack.aclose()


async def ask(params: Any) -> dict[str, Any]:
    """Pass a question on to the test, and wait for the answer: `action` and, for a form, `content`."""
    _write({"asked": plain(params)})
    return dict(json.loads(await asyncio.to_thread(sys.stdin.readline)))


def plain(value: Any) -> Any:
    """Return models of a client's library as JSON values."""
    return json.loads(json.dumps(value, default=_dump))


def called(result: Any) -> dict[str, Any]:
    """Return what the official models of a tool's result hold."""
    text = "\n".join(block.text for block in result.content if block.type == "text")
    found = plain(result)
    return {
        "text": text,
        "structured": found.get("structuredContent"),
        "is_error": bool(found.get("isError")),
        "meta": found.get("_meta") or {},
    }


async def serve() -> None:
    """Serve the test until it closes the standard input."""
    driver: Driver
    while line := await asyncio.to_thread(sys.stdin.readline):
        [(command, given)] = json.loads(line).items()
        try:
            done: Any
            match command:
                case "connect":
                    driver = importlib.import_module(given["driver"]).driver
                    done = await driver.connect(given)
                case "list":
                    done = await driver.list()
                case "call":
                    done = await driver.call(given["tool"], given["arguments"])
                case "close":
                    done = await driver.close()
            _write({"done": plain(done)})
        except Exception as error:
            _write({"failed": _failure(error)})


def _failure(error: BaseException) -> dict[str, Any]:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    code = getattr(error, "code", None)
    return {
        "message": str(error),
        "code": code if isinstance(code, int) else None,
    }


def _dump(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, exclude_none=True, mode="json")
    return str(value)


def _write(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, default=_dump) + "\n")
    sys.stdout.flush()
