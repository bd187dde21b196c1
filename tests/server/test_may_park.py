"""Which calls read the task table at their start: those that may wait in it, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing import EVERYTHING, FakeClock, Player
from mcp_roundtrip_testing.task_table import TaskTable

SIGNED_IN = {"jwt": {"claims": {"iss": "https://id", "sub": "ada"}}}
FORMS: Mapping[str, Any] = {"elicitation": {}}
BREAKS = {META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}}


class CountingStore(MemoryStore):
    """Counts the reads of single items."""

    reads = 0

    def get(self, pk: str, sk: str) -> Any:
        self.reads += 1
        return super().get(pk, sk)


def reads(capabilities: Mapping[str, Any], tool: str = "asks", **client: Any) -> int:
    """Return how often a call that needs no answer reads the table."""
    server = Server("reads")

    @server.tool
    def asks(ctx: Context) -> str:
        return "done"

    @server.tool(channels=("default",))
    def asks_for_defaults(ctx: Context) -> str:
        return "done"

    @server.tool
    def plain() -> str:
        return "done"

    clock, store = FakeClock(), CountingStore()
    ports = {"tasks": TaskTable(clock, store), "auth": EventAuthenticator(AuthMode.JWT)}
    player = Player(server, capabilities, clock=clock, ports=ports, **{"authorizer": SIGNED_IN, **client})
    assert player.call(tool).text == "done"
    return store.reads


@pytest.mark.parametrize("capabilities", [{}, FORMS, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_a_call_that_a_client_may_have_to_repeat_reads_once(capabilities: Mapping[str, Any]) -> None:
    assert reads(capabilities) == 1


def test_a_call_of_a_client_that_shows_all_questions_reads_nothing() -> None:
    assert reads(EVERYTHING) == 0


def test_a_tool_without_a_context_reads_nothing() -> None:
    assert reads({}, "plain") == 0


def test_a_tool_whose_questions_never_wait_reads_nothing_unless_its_client_cannot_continue() -> None:
    assert reads(FORMS, "asks_for_defaults") == 0
    assert reads(FORMS, "asks_for_defaults", meta=BREAKS) == 1
    assert reads({}, "asks_for_defaults") == 1
