"""A deployment whose callers cannot be asked by the protocol: their calls wait in the task table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from msgspec import structs

from mcp_roundtrip import Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.state.keys import LocalKey
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.question_links import QuestionLinks
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import CrashingStore, TaskTable
from mcp_roundtrip_testing.workers import NEVER
from support.legacy_schema import assert_valid
from support.messages import META, call, headers
from support.question_links import answer_link

KEY = LocalKey.generate()
TOKEN = re.compile(r"https://mcp\.test/mcp/questions\?token=([A-Za-z0-9_-]{43})(?!\S)")


class Context:
    """A Lambda context. `deadline_ms` is compared with the clock's `monotonic_ms`."""

    aws_request_id = "call"

    def __init__(self, clock: FakeClock, remaining_ms: float) -> None:
        self._clock, self._deadline_ms = clock, clock.monotonic_ms() + remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int(self._deadline_ms - self._clock.monotonic_ms()))


@dataclass
class ParkedDeployment:
    """Callers share nothing but the table and the key. `round_ms` is the time of each request.

    `is_legacy`: the client opens with `initialize`; its responses are checked against 2025-11-25.
    `while_waiting` is called at each pause of a request. `stands_still`: pauses take no time, because several
    threads share the clock.
    """

    server: Server
    is_legacy: bool = False
    user: str | None = "alice"
    session_id: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    round_ms: float = 29_000
    clock: FakeClock = field(default_factory=FakeClock)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    store: TaskStore = field(default_factory=MemoryStore)
    while_waiting: Callable[[], object] = lambda: None
    stands_still: bool = False

    def __post_init__(self) -> None:
        self.table = TaskTable(self.clock, self.store)

    def ports(self, store: TaskStore | None = None) -> Ports:
        mode = AuthMode.NONE if self.user is None else AuthMode.JWT
        ports = make_ports(
            key=KEY,
            clock=self.clock,
            observer=self.observer,
            auth=EventAuthenticator(mode),
            tasks=self.table,
        )
        return structs.replace(ports, tasks=partial(self.table.port, store), pause_ms=self._pause_ms)

    def _pause_ms(self, duration_ms: float) -> None:
        if not self.stands_still:
            self.clock.advance(duration_ms / 1000)
        self.while_waiting()

    def by(self, user: str | None = "alice", session_id: str | None = None) -> ParkedDeployment:
        """Return another caller of the same deployment."""
        caller = replace(self, user=user, session_id=session_id)
        caller.table = self.table
        return caller

    # -- the client -------------------------------------------------------------------------------------

    def respond(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        store: TaskStore | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        if self.is_legacy:
            body = call(tool, arguments, meta=None)
            given = {"mcp-protocol-version": "2025-11-25", "accept": "application/json, text/event-stream"}
            if self.session_id is not None:
                given["mcp-session-id"] = self.session_id
        else:
            body = call(tool, arguments, meta={**META, META_CLIENT_CAPABILITIES: self.capabilities})
            body["params"] |= params or {}
            given = headers(body)
        claims = {} if self.user is None else {"jwt": {"claims": {"iss": "https://id", "sub": self.user}}}
        request = HttpRequest("POST", given, json.dumps(body), claims)
        deadline_ms = self.clock.monotonic_ms() + self.round_ms - 1_000
        context = Context(self.clock, self.round_ms)
        return self.server.endpoint.respond(
            request, self.ports(store), Invocation("id", deadline_ms, context)
        )

    def post(
        self,
        tool: str,
        *,
        store: TaskStore | None = None,
        params: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Any:
        """The response to a call; `params` are those of a retry."""
        response: dict[str, Any] = json.loads(self.respond(tool, arguments, store, params).body)
        if self.is_legacy:
            assert_valid("tools/call", response)
        return response

    def call(self, tool: str, *, store: TaskStore | None = None, **arguments: Any) -> str:
        """The text of a call's result."""
        result = self.post(tool, store=store, **arguments)["result"]
        return "\n".join(block["text"] for block in result["content"])

    @property
    def outcome(self) -> str:
        """The outcome of the last request in the log."""
        records = [fields for event, fields in self.observer.events if event == "request_completed"]
        return str(records[-1].get("outcome"))

    # -- the user ---------------------------------------------------------------------------------------

    @property
    def links(self) -> QuestionLinks:
        return QuestionLinks(self.table.port().tasks)

    def token(self, text: str) -> str:
        """The token of the only link in a text."""
        [token] = TOKEN.findall(text)
        return str(token)

    def answer(self, text: str, **values: Any) -> str:
        """Answer the questions behind the link in a text by their keys; None declines."""
        token = self.token(text)
        asked = self.links.find(token).requests
        assert asked.keys() == values.keys()
        return answer_link(self.links, token, {key: _response(value) for key, value in values.items()})

    # -- the table --------------------------------------------------------------------------------------

    def tasks(self) -> list[Task]:
        """The tasks in a table in memory."""
        assert isinstance(self.store, MemoryStore)
        return [Task.from_item(item) for (_, sk), item in self.store._items.items() if sk == TASK]

    def count_calls(self, tool: str, **arguments: Any) -> int:
        """The calls of the store that a call makes."""
        counting = CrashingStore(self.store, NEVER, is_done=False)
        self.call(tool, store=counting, **arguments)
        return counting.calls


def _response(value: Any) -> dict[str, Any]:
    if value is None:
        return {"action": "decline"}
    return {"action": "accept", "content": value if isinstance(value, dict) else {"value": value}}
