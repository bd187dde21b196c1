"""The functions of a case, on Lambda as far as they can tell, and the record of what they did.

Events go in through the handlers, and settings through environment variables. Out come the return values, the
calls to AWS, and the lines on stdout. Only this module replaces something inside the layer: how the ports of
an execution environment are made, and the observer of a process, because several functions share this
process; and where requests to AWS and to the issuer are sent, because HTTP would take most of the time.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from corpus.aws_account import ACCOUNT, ARN, MAC_KEY, REGION, SIGNING_KEY, TABLE, URL, Account
from corpus.clock import Clock
from mcp_roundtrip.auth import issuer_keys
from mcp_roundtrip.aws import signed_client
from mcp_roundtrip.aws.connections import Connections
from mcp_roundtrip.aws.signed_client import SignedClient
from mcp_roundtrip.deployment import wiring

AUDIENCE = "https://mcp.example.com/mcp"
STACK = "corpus"

BASE = {
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "HOME": "/nonexistent",
    "AWS_LAMBDA_LOG_STREAM_NAME": "2026/08/01/[7]corpus",
}
STATES = {
    "MCP_AUDIENCE": AUDIENCE,
    "MCP_ISSUER": STACK,
    "MCP_STATE_KEY_ARN": ARN + SIGNING_KEY,
    "MCP_STATE_ENCRYPTION_KEY_ARN": ARN + MAC_KEY,
}
WORKER = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{STACK}_worker:7"
QUEUE = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{STACK}-tasks"
TASKS = {"MCP_TASK_TABLE": TABLE, "MCP_TASK_WORKER": WORKER}
QUEUED_TASKS = {**TASKS, "MCP_TASK_QUEUE": QUEUE, "MCP_TASK_DELIVERY": "queue"}

REQUEST_TIME_S, WORKER_TIME_S = 30.0, 900.0


OWN = ("MCP_TASK_QUEUE", "MCP_TASK_WORKER")
"""Settings that each function has in a variable of its own."""

MakeServer = Callable[[], Any]
"""Returns a new Server or FrontDoor."""


@dataclass
class World:
    """One case: its clock, its account, and its record."""

    clock: Clock
    account: Account
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """What the features of the case remember outside of the server, such as visited pages."""
    _end: tuple[int, int] | None = None
    _lines: io.StringIO = field(default_factory=io.StringIO)

    def function(self, make: MakeServer, name: str = f"{STACK}_play", **settings: str) -> Function:
        environment = {name: value for name, value in {**STATES, **settings}.items() if value}
        function = Function(self, make, name, environment)
        self.account.functions[name] = function.invoked
        for worker in (WORKER, WORKER.removesuffix(":7")):  # a version, and the newest code
            self.account.functions.setdefault(worker, lambda event, context: None)
        return function

    def kill(self) -> None:
        """End the process of the function as Lambda does: nothing that it still does has an effect."""
        self._end, self.account.is_cut_off = (len(self.account.calls), self._lines.tell()), True

    def record(self, request: Mapping[str, Any], answer: Callable[[], Any]) -> Any:
        """Record a request, the answer or the exception, the calls to AWS, and the lines on stdout."""
        began, written = len(self.account.calls), self._lines.tell()
        outcome: dict[str, Any] = {}
        with redirect_stdout(self._lines):
            try:
                outcome["response"] = answer()
            except Exception as error:
                outcome["raises"] = f"{type(error).__name__}: {error}"
        calls, lines = self.account.calls[began:], self._lines.getvalue()[written:]
        if self._end is not None:
            outcome, calls, lines = (
                {"killed": True},
                calls[: self._end[0] - began],
                lines[: self._end[1] - written],
            )
            self._end, self.account.is_cut_off = None, False
        members = {
            "request": request,
            **outcome,
            "aws": calls,
            "log": [parsed for line in lines.splitlines() if not _is_of_start(parsed := _parsed(line))],
        }
        # A copy: the account and the client may change what they have.
        self.exchanges.append(json.loads(json.dumps({k: v for k, v in members.items() if v != []})))
        return outcome.get("response")


def _parsed(line: str) -> Any:
    try:
        found = json.loads(line)
    except ValueError:
        return line
    directives = found.get("_aws", {}).get("CloudWatchMetrics", ()) if isinstance(found, dict) else ()
    for metric in (metric for directive in directives for metric in directive["Metrics"]):
        # Counts. Powertools writes 1.0, which CloudWatch reads as 1.
        found[metric["Name"]] = [int(value) for value in found[metric["Name"]] if value == int(value)]
    return found


def _is_of_start(line: Any) -> bool:
    """Return whether a line says at the first request which settings the features lack.

    Most cases leave settings out on purpose, and would all begin with these lines.
    """
    return isinstance(line, dict) and (line.get("message") == "setting_missing" or "setting_missing" in line)


@dataclass
class Function:
    """A Lambda function in one execution environment."""

    world: World
    make: MakeServer
    name: str
    environment: dict[str, str]
    time_s: float = REQUEST_TIME_S
    requests: int = 0

    @cached_property
    def server(self) -> Any:
        server = self.make()
        server._ports = cache(wiring.ports.__wrapped__)
        return server

    @cached_property
    def _observer(self) -> Any:
        return cache(wiring.observer.__wrapped__)

    def another_environment(self) -> Function:
        """Return the function in a new execution environment."""
        return Function(self.world, self.make, self.name, self.environment)

    def request(self, event: Any, described: Mapping[str, Any]) -> Any:
        return self.world.record(described, lambda: self._run("lambda_handler", event, self.time_s))

    def work(self, event: Any, time_s: float = WORKER_TIME_S, request_id: str | None = None) -> Any:
        answer = partial(self._run, "worker_handler", event, time_s, request_id=request_id)
        return self.world.record({"worker": event}, answer)

    def invoked(self, event: Any, client_context: Any) -> Any:
        return self._run("lambda_handler", event, self.time_s, client_context)

    def _run(
        self,
        handler: str,
        event: Any,
        time_s: float,
        client_context: Any = None,
        request_id: str | None = None,
    ) -> Any:
        self.requests += 1
        clock = self.world.clock
        ends = clock.now + time_s
        custom = None if client_context is None else SimpleNamespace(custom=client_context.get("custom"))
        context = SimpleNamespace(
            aws_request_id=request_id or f"{self.name.split(':')[-1]}-{self.requests}",
            function_name=self.name,
            client_context=custom,
            get_remaining_time_in_millis=lambda: max(0, int((ends - clock.now) * 1000)),
        )
        with self._entered():
            return getattr(self.server, handler)(json.loads(json.dumps(event)), context)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        environment = {
            **BASE,
            "AWS_ENDPOINT_URL": URL,
            "AWS_LAMBDA_FUNCTION_NAME": self.name.split(":function:")[-1].partition(":")[0],
            **as_deployed(self.environment),
        }
        with (
            patch.object(os, "environ", environment),
            patch.object(wiring, "observer", self._observer),
        ):
            yield


def as_deployed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a function as template.yaml has them: the shared settings are lines of one."""
    own = {name: value for name, value in environment.items() if name in OWN or not name.startswith("MCP_")}
    shared = [f"{name}={value}" for name, value in environment.items() if name not in own]
    return {**own, "MCP_SETTINGS": "\n".join(shared)} if shared else own


@contextmanager
def opened_world() -> Iterator[World]:
    """Yield the world of a new case: its clock, its randomness, and its account for all connections."""
    clock = Clock()
    account = Account()
    requests = patch.object(Connections, "request", lambda connections, *given: account.request(*given))
    issuer = patch.object(issuer_keys, "fetch", account.fetch)
    # The pause between two attempts of a call takes no time, and no time of the record either.
    without_pauses = patch.object(
        signed_client, "SignedClient", partial(SignedClient, sleep=lambda seconds: None)
    )
    with clock.installed(), requests, issuer, without_pauses:
        yield World(clock, account)
