"""Clients consent to a page at once, and an approver decides on it 3, 30 and 200 s later.

Clients, processes and HTTP are real. Time runs 25 times faster.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from threading import Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import mcp_types as types
import pytest
from mcp.client import Client

from support.forked_programs import python_of_functions
from support.interpreters import TIMES_FASTER
from support.mailbox import Mailbox, decide
from support.served_application import Served, serve_for_alice

if TYPE_CHECKING:
    from support.typescript_client import RunModule

pytest_plugins = ["support.typescript_client"]

DELAYS_S = (3, 30, 200)

Call = Callable[[str, list[dict[str, Any]]], list[dict[str, Any]]]
"""A function that calls the tool concurrently with each of the arguments. Returns structured contents."""


class Approver(Mailbox):
    """An approver who approves each request after its e-mail with the next of the delays (seconds)."""

    def __init__(self, delays_s: tuple[float, ...]) -> None:
        super().__init__()
        self._delays = iter(delays_s)
        self.received = self._begin

    def _begin(self, link: str) -> None:
        Timer(next(self._delays) / TIMES_FASTER, lambda: decide(link, approved=True)).start()


@pytest.fixture
def approver() -> Approver:
    return Approver(DELAYS_S)


@pytest.fixture
def served(approver: Approver) -> Iterator[Served]:
    with serve_for_alice(approver, python=python_of_functions("fast_clock")) as served:
        yield served


def with_python(url: str, expenses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    async def agree(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept")

    async def call(client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await client.call_tool("request_approval", arguments)
        assert not result.is_error, result
        return dict(result.structured_content or {})

    async def calls() -> list[dict[str, Any]]:
        async with Client(url, elicitation_callback=agree) as client:
            return await asyncio.gather(*(call(client, arguments) for arguments in expenses))

    return asyncio.run(calls())


TYPESCRIPT = """
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client(
  { name: "late-decisions", version: "1.0.0" },
  { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: "auto" } },
);
client.setRequestHandler("elicitation/create", async () => ({ action: "accept" }));
await client.connect(new StreamableHTTPClientTransport(new URL(URL_OF_SERVER)));
const results = await Promise.all(
  EXPENSES.map((expense) => client.callTool({ name: "request_approval", arguments: expense })),
);
console.log(JSON.stringify(results.map(({ structuredContent }) => structuredContent)));
await client.close();
"""


@pytest.fixture
def with_typescript(run_module: RunModule) -> Call:
    def call(url: str, expenses: list[dict[str, Any]]) -> list[dict[str, Any]]:
        program = TYPESCRIPT.replace("URL_OF_SERVER", json.dumps(url)).replace(
            "EXPENSES", json.dumps(expenses)
        )
        contents: list[dict[str, Any]] = json.loads(run_module(program))
        return contents

    return call


@pytest.fixture(params=["Python", "TypeScript"])
def call(request: pytest.FixtureRequest) -> Call:
    found: Call = with_python
    if request.param == "TypeScript":
        found = request.getfixturevalue("with_typescript")
    return found


def test_a_late_decision_completes_the_waiting_call(served: Served, approver: Approver, call: Call) -> None:
    expenses = [{"purpose": f"Trip {number}", "amount_eur": 100} for number in range(len(DELAYS_S))]
    contents = call(urljoin(served.url, "/tools/approval"), expenses)
    assert [content["approved"] for content in contents] == [True] * len(DELAYS_S)
    assert len({content["reference"] for content in contents}) == len(approver.emails) == len(DELAYS_S)
    rounds = sum("tools/call" in line and line.startswith("POST") for line in served.lines)
    assert 2 * len(DELAYS_S) < rounds <= 11 * len(DELAYS_S), "each needs at least two"
