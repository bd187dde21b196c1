"""A deployment with tasks: requests go to the endpoint, and the test runs workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip import Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.state.keys import LocalKey
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import TaskTable
from support.messages import META, headers, message
from support.tasks_schema import assert_valid

DECLARED: Mapping[str, Any] = {"elicitation": {}, "sampling": {}, "extensions": {TASKS_EXTENSION: {}}}
UNDECLARED: Mapping[str, Any] = {"elicitation": {}}
ROUND_MS = 28_000
KEY = LocalKey.generate()


def accepted(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": value if isinstance(value, dict) else {"value": value}}


_REQUEST_IDS = (f"request-{number}" for number in count())


@dataclass
class LambdaContext:
    """A Lambda context with `remaining_ms` left. Each has a request id of its own, or that of a retry."""

    aws_request_id: str = field(default_factory=lambda: next(_REQUEST_IDS))
    remaining_ms: int = 900_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@dataclass
class TaskDeployment:
    """A deployment whose requests and workers share only the table and the key. `user` None is anonymous.

    Every response is validated with the models of the protocol and of the extension.
    """

    server: Server
    clock: FakeClock = field(default_factory=FakeClock)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    capabilities: Mapping[str, Any] = field(default_factory=lambda: DECLARED)
    user: str | None = "alice"
    max_rounds: int = 9
    store: TaskStore = field(default_factory=MemoryStore)
    table: TaskTable = field(init=False)

    def __post_init__(self) -> None:
        self.table = TaskTable(self.clock, self.store)

    def ports(self, store: TaskStore | None = None) -> Ports:
        """Return the ports of a new environment, optionally with another store, such as a failing one."""
        ports = make_ports(
            key=KEY,
            clock=self.clock,
            observer=self.observer,
            auth=EventAuthenticator(AuthMode.NONE if self.user is None else AuthMode.JWT),
            tasks=self.table,
            max_rounds=self.max_rounds,
        )
        return replace(ports, tasks=partial(self.table.port, store))

    def next_deployment(self, server: Server) -> TaskDeployment:
        """Return a deployment of another build with the same table."""
        later = TaskDeployment(server, self.clock, self.observer)
        later.table = self.table
        return later

    # -- as a client ------------------------------------------------------------------------------------

    def send(
        self,
        body: Mapping[str, Any],
        *,
        user: str | None = None,
        store: TaskStore | None = None,
        text: str | None = None,
        **changes: str | None,
    ) -> HttpResponse:
        """Send a body, or `text` in its place. `changes` replace headers that mirror the body."""
        caller = user or self.user
        claims = {} if caller is None else {"jwt": {"claims": {"iss": "https://id", "sub": caller}}}
        request = HttpRequest("POST", headers(body, **changes), text or json.dumps(body), claims)
        deadline_ms = self.clock.monotonic_ms() + ROUND_MS
        return self.server.endpoint.respond(request, self.ports(store), Invocation("id", deadline_ms))

    def body(self, method: str, *, capabilities: Mapping[str, Any] | None = None, **params: Any) -> Any:
        declared = self.capabilities if capabilities is None else capabilities
        return message(method, meta={**META, META_CLIENT_CAPABILITIES: declared}, **params)

    def post(
        self, method: str, *, user: str | None = None, store: TaskStore | None = None, **params: Any
    ) -> Any:
        """Send a request and return the response. `capabilities` replaces those of this client."""
        response = json.loads(self.send(self.body(method, **params), user=user, store=store).body)
        assert_valid(method, response)
        return response

    def call(self, name: str, /, **params: Any) -> Any:
        return self.post("tools/call", name=name, arguments=params.pop("arguments", {}), **params)

    def start(self, name: str, /, **arguments: Any) -> str:
        """Call a tool that becomes a task at once, and return the task id."""
        result = self.call(name, arguments=arguments)["result"]
        assert result["resultType"] == "task"
        return str(result["taskId"])

    def get(self, task_id: str, **more: Any) -> Any:
        return self.post("tasks/get", taskId=task_id, **more)

    def status(self, task_id: str) -> str:
        return str(self.get(task_id)["result"]["status"])

    def update(self, task_id: str, **responses: Any) -> Any:
        return self.post("tasks/update", taskId=task_id, inputResponses=responses)

    def cancel(self, task_id: str) -> Any:
        return self.post("tasks/cancel", taskId=task_id)

    # -- as AWS -----------------------------------------------------------------------------------------

    def run_workers(self) -> None:
        """Run workers until no dispatch is left."""
        while self.table.dispatcher.sent:
            self.run_worker()

    def run_worker(self, store: TaskStore | None = None) -> None:
        """Run a worker for the first dispatch."""
        _, pk = self.table.dispatcher.sent.popleft()
        work(self.server._tool_methods, {"task": pk}, LambdaContext(), partial(self.ports, store))
