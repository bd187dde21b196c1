"""A call that waits for answers on the question page, made without running a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any

from mcp_roundtrip.journal import Fingerprint, Journal
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Task
from mcp_roundtrip.tasks.question_links import PAGE, AnswerState, QuestionLinks, link_to_item, new_token
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import TaskTable

TTL_MS = 3_600_000
TOOL = "provision"


def form(schema: Mapping[str, Any], message: str = "How large?") -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def url(address: str, message: str = "Sign in") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": address}}


def answer_link(links: QuestionLinks, token: str, responses: Mapping[str, Any]) -> AnswerState:
    """Answer the questions that a link leads to."""
    return links.answer(links.find(token), responses)


@dataclass
class WaitingCalls:
    """Calls that wait in a table of tasks, and the responses that were stored."""

    table: TaskTable = field(default_factory=lambda: TaskTable(FakeClock()))

    @property
    def clock(self) -> FakeClock:
        return self.table.clock

    @property
    def store(self) -> TaskStore:
        return self.table.store

    @property
    def tasks(self) -> Tasks:
        return self.table.port().tasks

    def ask(
        self, requests: Mapping[str, Mapping[str, Any]], tool: str = TOOL, channel: str = PAGE
    ) -> tuple[str, Task]:
        """Return the token of a link to these requests, and the task that waits for the answers."""
        call = TaskCall("tools/call", tool, {}, None, None)
        task = self.tasks.create(call, "alice", Journal("f"), worker="w:1", capabilities={}, ttl_ms=TTL_MS)
        token = new_token(token_bytes)
        outstanding = {
            key: OutstandingRequest(key, Fingerprint("m", "f"), request, order, channel)
            for order, (key, request) in enumerate(requests.items())
        }
        self.store.put_new(link_to_item(token, task, tool, outstanding))
        now_ms = int(self.clock() * 1000)
        claim = transitions.claim(owner="w", delivery="d", until_ms=now_ms + 9, now_ms=now_ms, max_attempts=9)
        claimed = self.store.update(task.pk, TASK, claim)
        assert claimed is not None
        change = transitions.await_responses(
            owner="w",
            version=int(claimed["ver"]),
            requests=outstanding,
            issued_counts=dict.fromkeys(outstanding, 1),
            accepted_keys=(),
            now_ms=now_ms,
            link=token,
        )
        assert self.store.update(task.pk, TASK, change) is not None
        return token, task

    def responses(self, task: Task) -> dict[str, Any]:
        item = self.store.get(task.pk, TASK)
        assert item is not None
        stored = TaskHistory.from_items(Task.from_item(item), self.store.query(task.pk))
        return dict(stored.responses)
