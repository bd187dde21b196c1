"""Third-party MCP clients behind one interface.

All answer questions through the same `Person`, sample through the same model and have the same root.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from support.page_user import answer_page, link_in

MODEL, SUMMARY = "the-clients-model", "Patterns and flowers."
SAMPLED = types.CreateMessageResult(
    role="assistant", content=types.TextContent(type="text", text=SUMMARY), model=MODEL
)
ROOT = {"uri": "file:///home/ada/engine", "name": "engine"}

Answer = Mapping[str, Any] | Callable[[str], None]
"""The content of a form, or a function that visits the URL of a page."""


@dataclass
class Person:
    """A user who gives these answers in order and records the messages."""

    answers: list[Answer]
    asked: list[str] = field(default_factory=list)

    def answer(self, params: types.ElicitRequestParams) -> dict[str, Any] | None:
        """Return the content of the form, or visit the page and return None."""
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        if isinstance(params, types.ElicitRequestURLParams):
            assert callable(answer)
            answer(params.url)
            return None
        assert not callable(answer)
        return dict(answer)


@dataclass
class Connected:
    """A client with a connection: that of the official Python SDK."""

    client: Any

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the structured content of a tool result, or its text as `text`."""
        result = await self.client.call_tool(name, dict(arguments))
        assert not result.is_error, result.content
        return result.structured_content or {"text": block_of(result.content)}

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """Return the text of the only message of a prompt."""
        [message] = (await self.client.get_prompt(name, dict(arguments))).messages
        return block_of([message.content])

    async def read(self, uri: str) -> str:
        """Return the text of the only contents of a resource."""
        return block_of((await self.client.read_resource(uri)).contents)


Connect = Callable[[str, Person], AbstractAsyncContextManager[Connected]]


@asynccontextmanager
async def official(url: str, person: Person, token: str | None = None) -> AsyncIterator[Connected]:
    """Connect the client of the official Python SDK, with an access token if it needs one."""

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=person.answer(params))

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        return SAMPLED

    async def list_roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [ROOT]})

    async with (
        transport(url, token) as server,
        Client(
            server, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=list_roots
        ) as client,
    ):
        yield Connected(client)


@asynccontextmanager
async def transport(url: str, token: str | None) -> AsyncIterator[Any]:
    """Yield what the official client connects to. With a token, each request has it."""
    if token is None:
        yield url
        return
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        yield streamable_http_client(url, http_client=http)


async def answered_on_page(
    url: str, tool: str, *answers: str, token: str | None = None, address: str | None = None
) -> str:
    """Call a tool with a client that cannot be asked, answer on the page, and call it again; return the text.

    `address` is what the deployment calls `url`.
    """
    async with transport(url, token) as server, Client(server, mode="legacy") as client:
        page = link_in(block_of((await client.call_tool(tool, {})).content))
        assert page.startswith(f"{address or url}/questions?")
        await run_sync(answer_page, page.replace(address or url, url), *answers)
        return block_of((await client.call_tool(tool, {})).content)


@asynccontextmanager
async def fast_mcp(url: str, person: Person, token: str | None = None) -> AsyncIterator[Connected]:
    """Connect the client of FastMCP, with an access token if it needs one."""
    # Importing them takes most of a second: not in each process of tests.
    import fastmcp
    import fastmcp_tasks  # noqa: F401  # importing it makes FastMCP's client follow tasks
    from fastmcp.client.elicitation import ElicitResult

    async def elicit(message: str, kind: Any, params: types.ElicitRequestParams, context: Any) -> Any:
        return ElicitResult(action="accept", content=person.answer(params))

    given: dict[str, Any] = {
        "sampling_handler": lambda *call: SAMPLED,
        "roots": [types.Root.model_validate(ROOT)],
    }
    async with fastmcp.Client(url, elicitation_handler=elicit, auth=token, **given) as client:
        yield Connected(client)


def block_of(content: Sequence[Any]) -> str:
    """Return the text of the only content block, or of the only contents of a resource."""
    [block] = content
    assert isinstance(block, types.TextContent | types.TextResourceContents)
    return block.text
