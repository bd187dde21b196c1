"""Tasks in a table that a test changes itself, without running a tool."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, Final, Self

from msgspec import structs

from mcp_roundtrip.engine.journal import Fingerprint, Journal
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Task
from mcp_roundtrip.tasks.open_task_limit import Owner
from mcp_roundtrip.tasks.parked_calls import ParkedCalls
from mcp_roundtrip.tasks.question_page_tokens import (
    PAGE,
    AnswerState,
    QuestionLinks,
    link_to_item,
    new_token,
)
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import Change, Item, TaskStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import TaskTable

TTL_MS: Final = 3_600_000
CALL: Final = TaskCall("tools/call", "order", {"item": "tea"}, None, None)
JOURNAL: Final = Journal("flow")


def form(schema: Mapping[str, Any], message: str = "How large?") -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def url(address: str, message: str = "Sign in") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": address}}


def answer_link(links: QuestionLinks, token: str, responses: Mapping[str, Any]) -> AnswerState:
    return links.answer(links.find(token), responses)


def outstanding(requests: Mapping[str, Any], channel: str = PAGE) -> dict[str, OutstandingRequest]:
    """Return requests by key as the table has them."""
    return {
        key: OutstandingRequest(key, Fingerprint("m", "f"), request, order, channel)
        for order, (key, request) in enumerate(requests.items())
    }


@dataclass
class StoredTasks:
    """The tasks of a principal in a table."""

    table: TaskTable = field(default_factory=lambda: TaskTable(FakeClock()))
    principal: str | None = "alice"
    dialect: str = "extension"

    @classmethod
    def over(cls, store: Any, **more: Any) -> Self:
        return cls(TaskTable(FakeClock(), store), **more)

    @property
    def clock(self) -> FakeClock:
        return self.table.clock

    @property
    def store(self) -> TaskStore:
        return self.table.store

    @property
    def tasks(self) -> Tasks:
        return structs.replace(self.table.tasks(), dialect=self.dialect)

    @property
    def links(self) -> QuestionLinks:
        return QuestionLinks(self.tasks)

    @property
    def parked(self) -> ParkedCalls:
        return ParkedCalls.of(self.tasks)

    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    def create(
        self, call: TaskCall = CALL, journal: Journal = JOURNAL, session: str | None = None, **options: Any
    ) -> Task:
        options = {"worker": "worker:1", "capabilities": {}, "ttl_ms": TTL_MS, **options}
        return self.tasks.create(call, Owner(self.principal, session, journal.flow_id), journal, **options)

    def get(self, task: Task) -> Any:
        return self.tasks.get(self.principal, task.task_id)

    def cancel(self, task: Task) -> None:
        assert self.tasks.cancel(self.principal, task.task_id) is not None

    def stored(self, task: Task) -> Task:
        item = self.store.get(task.pk, TASK)
        assert item is not None
        return Task.from_item(item)

    def history(self, task: Task) -> TaskHistory:
        """Return what the next worker of a task reads."""
        return TaskHistory.from_items(self.stored(task), self.store.query(task.pk))

    def responses(self, task: Task) -> dict[str, Any]:
        return dict(self.history(task).responses)

    # -- what workers write -------------------------------------------------------------------------------

    def update(self, task: Task, change: Change) -> Item | None:
        return self.store.update(task.pk, TASK, change)

    def claim(self, task: Task, owner: str = "w", lease_ms: int = 9) -> Item | None:
        now_ms = self.now_ms()
        claim = transitions.claim(owner=owner, delivery="d", until_ms=now_ms + lease_ms, now_ms=now_ms)
        return self.update(task, claim)

    def complete(self, task: Task, result: str = "{}") -> None:
        """Claim a task, and end it with a result in JSON."""
        assert self.claim(task) is not None
        end = transitions.complete(owner="w", now_ms=self.now_ms(), attributes={"res": result})
        assert self.update(task, end) is not None

    def park(self, task: Task, requests: Mapping[str, OutstandingRequest], tool: str = "order") -> str:
        """Claim a task, and let it wait for answers. Return the token of the link to them."""
        token = new_token(token_bytes)
        assert self.store.put_new(link_to_item(token, task, tool, requests)) is None
        claimed = self.claim(task)
        assert claimed is not None
        change = transitions.await_responses(
            owner="w",
            version=int(claimed["ver"]),
            requests=requests,
            issued_counts=dict.fromkeys(requests, 1),
            accepted_keys=(),
            now_ms=self.now_ms(),
            link=token,
        )
        assert self.update(task, change) is not None
        return token

    def ask(
        self, requests: Mapping[str, Any], tool: str = "provision", channel: str = PAGE
    ) -> tuple[str, Task]:
        """Return the token of a link to these requests, and the new task that waits for the answers."""
        task = self.create(structs.replace(CALL, name=tool))
        return self.park(task, outstanding(requests, channel), tool), task
