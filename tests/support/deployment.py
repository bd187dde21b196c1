"""A deployment in this process as one of its callers meets it. Tests build every deployment here.

::

    alice = Deployment(server)                              # signed in, with a client of 2026-07-28
    assert alice.text("add", a=1, b=2) == "3"
    bob = alice.by(user="bob", version=LEGACY_VERSION)      # another caller and client of the same deployment
    lost = alice.by(store=CrashingStore(alice.store, 2, is_done=True))    # requests that meet another store

Requests and workers share only the key, the clock, the table and the logs. `ClientRequests` has the requests.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import structs

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.lambda_invocation import Invocation
from mcp_roundtrip.state.jws import LocalKey
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import TaskStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import RecordingObserver, make_ports
from mcp_roundtrip_testing.task_table import MemoryStore, RecordingDispatcher, TaskTable
from mcp_roundtrip_tools.catalog.catalog import render_servers
from support import callers
from support.audit_lines import AuditLines
from support.aws_clients import DEFAULT_KIND
from support.client_requests import ASKABLE, ClientRequests, responses
from support.event_sources import event_of, response_of
from support.lambda_context import LambdaContext

if TYPE_CHECKING:
    from mcp_roundtrip.observing.opentelemetry_tracer import Tracer

KEY: Final = LocalKey.generate()
MARGIN_MS: Final = 1_000
"""What a handler keeps of the time of an invocation."""


@dataclass
class Deployment(ClientRequests):
    """A deployment and one of its callers. The facets stand in groups, each with its default."""

    server: Server
    # The functions. A request is an event of a `source` (event_sources.HTTP_SOURCES). Without a source and a
    # front door, it reaches the endpoint without an event. The front door is `front_door`, or a new one with
    # these arguments of FrontDoor and a catalog of `owners`. Without owners, the server is the only owner.
    source: str | None = None
    through_door: bool = False
    front_door: FrontDoor | None = None
    door_options: Mapping[str, Any] = field(default_factory=dict)
    owners: Mapping[str, Server] = field(default_factory=dict)
    # The ports. `replaced_settings` has members of Settings, and `replaced_ports` members of Ports.
    key: LocalKey = KEY
    clock: FakeClock = field(default_factory=FakeClock)
    store: TaskStore = field(default_factory=MemoryStore)
    has_table: bool = True
    max_open: int = 0
    dispatcher: Any = field(default_factory=RecordingDispatcher)
    observer: Any = field(default_factory=RecordingObserver)
    audit: AuditLines | None = None
    tracer: Tracer | None = None
    # With `settings`, the ports are those that a deployed function has, but `observer` has the log.
    settings: Mapping[str, str] | None = None
    replaced_settings: Mapping[str, Any] = field(default_factory=dict)
    replaced_ports: Mapping[str, Any] = field(default_factory=dict)
    # What a front door sent: the owner, the event, the client context, and the timeout in seconds.
    forwarded: list[tuple[str, Any, Any, int]] = field(default_factory=list)
    # The caller. `mode` None: signed in by a JWT authorizer, or anonymous without a user.
    user: str | None = "alice"
    mode: AuthMode | None = None
    scopes: tuple[str, ...] = ()
    session_id: str | None = None
    # The client. One of another version opens with `initialize`; None sends no MCP-Protocol-Version.
    version: str | None = PROTOCOL_VERSION
    capabilities: Mapping[str, Any] = field(default_factory=lambda: ASKABLE)
    # A request: its time, and what happens at each pause. `stands_still`: pauses take no time, because
    # threads share the clock.
    round_ms: float = 29_000
    while_waiting: Callable[[], object] = lambda: None
    stands_still: bool = False
    table: TaskTable = field(default=cast(TaskTable, None))  # of `store` and `clock`, and shared by `by`

    def __post_init__(self) -> None:
        if self.table is None:
            self.table = TaskTable(self.clock, self.store, self.dispatcher, max_open=self.max_open)
        if self.through_door and self.front_door is None:
            self.front_door = make_front_door(self._owners, **self.door_options)
        if self.settings is not None:
            configured = wiring.make_ports(load_settings({"MCP_AWS_CLIENT": DEFAULT_KIND, **self.settings}))
            self._configured = structs.replace(configured, observer=self.observer)

    def by(self, **facets: Any) -> Deployment:
        """Return another view of this deployment: another caller, client, request or store.

        The table keeps its clock, dispatcher and limit. `table=None` gives the view a table of its own.
        """
        return replace(self, **facets)

    def ports(self) -> Ports:
        """Return the ports of a new environment."""
        if self.settings is not None:
            return self._configured
        ports = make_ports(
            key=self.key,
            clock=self.clock,
            observer=self.observer,
            auth=callers.authenticator(self.auth_mode, self.clock),
            forward=self._forward,
            tasks=self.table if self.has_table else None,
            tracer=self.tracer,
            audit=None if self.audit is None else self.audit.log,
        )
        settings = structs.replace(ports.settings, **self.replaced_settings)
        replaced = {"tasks": self._tasks, "pause_ms": self._pause_ms, **self.replaced_ports}
        return structs.replace(ports, settings=settings, **replaced)

    def _tasks(self) -> Tasks:
        return self.table.tasks(self.store)

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Respond in a new environment."""
        context = LambdaContext(self.clock, self.round_ms)
        if self.source is None and not self.through_door:
            deadline_ms = self.clock.monotonic_ms() + self.round_ms - MARGIN_MS
            invocation = Invocation(context.aws_request_id, deadline_ms, context)
            return self.server.endpoint.respond(request, self.ports(), invocation)
        event = event_of(self.source or "http_api", request, self.clock())
        return response_of(self.invoke(event, context))

    def invoke(self, event: Mapping[str, Any], context: LambdaContext | None = None) -> Any:
        """Invoke the function that is called first: the front door, or the server."""
        entry = self.front_door if self.through_door and self.front_door is not None else self.server
        for each in (entry, *self._owners.values()):
            each._ports = self.ports
        before = len(self.forwarded)
        answer = entry.lambda_handler(event, context or LambdaContext(self.clock, self.round_ms))
        assert all(forwarded == event for _, forwarded, *_ in self.forwarded[before:])
        return answer

    def _forward(
        self, owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        """Invoke the owner as another process does, which has no context variables of this one."""
        assert custom["mcpDeadlineMs"] == int((self.clock() + timeout_s) * 1_000)
        self.forwarded.append((owner, event, custom, timeout_s))
        context = LambdaContext(self.clock, timeout_s * 1_000, json.loads(json.dumps(custom)))
        return Context().run(self._owners[owner].lambda_handler, json.loads(json.dumps(event)), context)

    @property
    def _owners(self) -> Mapping[str, Server]:
        return self.owners or {"owner": self.server}

    def run_workers(self) -> None:
        """Run workers until no dispatch is left."""
        while self.sent:
            self.run_worker()

    def run_worker(self) -> None:
        """Run a worker for the first dispatch."""
        _, pk = self.sent.popleft()
        self.work({"task": pk})

    def work(self, event: Mapping[str, Any], context: LambdaContext | None = None) -> Any:
        """Invoke the worker function. Lambda repeats an invocation with the same `context`."""
        function = copy(self.server)  # workers of other views may run meanwhile
        function._ports = self.ports
        return function.worker_handler(event, context or LambdaContext(self.clock))

    def run_task(self, tool: str, /, **arguments: Any) -> str:
        task_id = self.start(tool, **arguments)
        self.run_workers()
        return task_id

    def resume(self, task_id: str, /, **answers: Any) -> None:
        """Answer questions of a task, and run its workers."""
        self.update(task_id, **responses(**answers))
        self.run_workers()

    # -- the table and the log ----------------------------------------------------------------------------

    def task(self, task_id: str) -> Task:
        """Return a task as the table has it."""
        task = self.table.task(task_id)
        assert task is not None
        return task

    @property
    def tasks(self) -> list[Task]:
        """The tasks in a table in memory."""
        assert isinstance(self.table.store, MemoryStore)
        return [Task.from_item(item) for (_, sk), item in self.table.store._items.items() if sk == TASK]

    @property
    def sent(self) -> deque[tuple[str, str]]:
        """The dispatches that no worker has taken: a worker, and the partition key of a task."""
        return self.table.dispatcher.sent

    @property
    def events(self) -> list[str]:
        """The names of the events in the log."""
        return [event for event, _ in self.observer.events]

    @property
    def failures(self) -> list[str]:
        """The names of the events in the log that have an exception."""
        return [event for event, _ in self.observer.failures]

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the requests in the log."""
        records = [fields for event, fields in self.observer.events if event == "request_completed"]
        return [str(fields.get("outcome")) for fields in records]

    @property
    def outcome(self) -> str:
        return self.outcomes[-1]

    def _pause_ms(self, duration_ms: float) -> None:
        if not self.stands_still:
            self.clock.advance(duration_ms / 1000)
        self.while_waiting()


def legacy(server: Server, **facets: Any) -> Deployment:
    """Return an anonymous client of 2025-11-25 that has opened no session, of a server without a table."""
    return Deployment(server, **{"user": None, "version": LEGACY_VERSION, "has_table": False, **facets})


def make_front_door(owners: Mapping[str, Server], **options: Any) -> FrontDoor:
    """Return a front door whose catalog has these owners. `options` are those of FrontDoor."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "catalog.json")
        path.write_text(render_servers(owners))
        return FrontDoor("door", path, **options)
