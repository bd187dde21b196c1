"""A client that plays calls in tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
    PROMPTS_GET,
    PROTOCOL_VERSION,
    RESOURCES_READ,
    TASKS_EXTENSION,
    TOOLS_CALL,
)
from mcp_roundtrip.protocol.mirrored_headers import encode_header
from mcp_roundtrip.protocol.parameter_headers import build_parameter_headers
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.state.keys import LocalKey
from mcp_roundtrip_testing.clock import FakeClock
from mcp_roundtrip_testing.loading import Source, load_server
from mcp_roundtrip_testing.observers import RecordingObserver, RequestObserver
from mcp_roundtrip_testing.played_call import NotReplayable, describe_unasked_answers, json_diff
from mcp_roundtrip_testing.played_task import PlayedTask
from mcp_roundtrip_testing.ports import RecordingCodec, make_codec, make_ports
from mcp_roundtrip_testing.round import Round
from mcp_roundtrip_testing.task_table import TaskTable
from mcp_roundtrip_testing.workers import Workers

__tracebackhide__ = True  # pytest shows the line of the test

EVERYTHING: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""Capabilities of a client that supports every kind of question."""

WITH_TASKS: Final[Mapping[str, Any]] = {**EVERYTHING, "extensions": {TASKS_EXTENSION: {}}}
"""Capabilities of a client that also supports tasks."""


@dataclass(slots=True)
class Player:
    """Plays a client with these `capabilities`.

    `source` is a server, a function that creates one, or the path of a module that contains one. The module
    is loaded again for each round and each worker, so that its globals do not survive. With `always_replay`,
    each step ends in a checkpoint, and each state and each waiting task is replayed once without answers and
    must ask the same questions again.

    A request has `remaining_ms`, a worker `worker_ms`. `meta` are additional members of its `_meta`.
    """

    source: Source
    capabilities: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING)
    authorizer: Mapping[str, Any] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)
    key: LocalKey = field(default_factory=LocalKey.generate)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    always_replay: bool = False
    remaining_ms: float = 29_000
    log_level: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    ports: Mapping[str, Any] = field(default_factory=dict)
    worker_ms: float = 900_000
    table: TaskTable = field(init=False)
    workers: Workers = field(init=False)
    _ids: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.table = self.ports.get("tasks") or TaskTable(self.clock)
        self.workers = Workers(
            self.source, self._ports, self.table, self.observer, self.worker_ms, self.always_replay
        )

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, /, **answers: Any) -> Round:
        """Call a tool. `answers` by key answer the questions of all rounds.

        Raises CallFailed if a call without an error has not asked all of these questions.
        """
        return self._play(TOOLS_CALL, {"name": name, "arguments": arguments or {}}, answers)

    def prompt(self, name: str, arguments: Mapping[str, str] | None = None, /, **answers: Any) -> Round:
        """Get a prompt; `answers` as in `call`."""
        return self._play(PROMPTS_GET, {"name": name, "arguments": arguments or {}}, answers)

    def read(self, uri: str, /, **answers: Any) -> Round:
        """Read a resource; `answers` as in `call`."""
        return self._play(RESOURCES_READ, {"uri": uri}, answers)

    def _play(self, method: str, params: Mapping[str, Any], answers: Mapping[str, Any]) -> Round:
        played = self.send_round(method, params, None, None).followed()
        asked: dict[str, Any] = {}
        left = dict(answers)
        while "error" not in played.message:
            asked |= played.asked
            ready = left.keys() & played.asked.keys()
            if not ready:
                break
            played = played.answer(**{key: left.pop(key) for key in ready})
        if left and "error" not in played.message and not played.failed:
            played.fail(f"{describe_unasked_answers(asked, answers)}; now {played.describe_state()}")
        return played

    def send(
        self,
        name: str,
        arguments: Mapping[str, Any],
        responses: Mapping[str, Any] | None,
        state: str | None,
    ) -> Round:
        """Send one `tools/call` request."""
        return self.send_round(TOOLS_CALL, {"name": name, "arguments": arguments}, responses, state)

    def send_round(
        self,
        method: str,
        params: Mapping[str, Any],
        responses: Mapping[str, Any] | None,
        state: str | None,
    ) -> Round:
        """Send the request of one round. `params` are the same in every round."""
        sent = dict(params)
        if responses is not None:
            sent["inputResponses"] = responses
        if state is not None:
            sent["requestState"] = state
        played = self._round(method, params, sent)
        if self.always_replay and "result" in played.message and played.state is not None and played.asked:
            self._replay(played, sent)
        return played

    def request(self, method: str, **params: Any) -> Mapping[str, Any]:
        """Send any other request and return the JSON-RPC response."""
        return self._post(method, params)[0]

    def task(self, task_id: str) -> PlayedTask:
        """Return a task after its workers have run until it rests."""
        return PlayedTask(task_id, self.request, self.workers).poll()

    def _replay(self, played: Round, params: Mapping[str, Any]) -> None:
        kept = {name: value for name, value in params.items() if name != "inputResponses"}
        again = self._round(played.method, played.params, {**kept, "requestState": played.state})
        if "result" not in again.message or again.journal is None or played.journal is None:
            text = f"{played.method}: the round asked {', '.join(played.asked)}, and in a replay"
            raise NotReplayable(f"{text} {again.describe_state()}") from again.raised
        known = len(played.journal.entries)
        before, further = again.journal.entries[:known], again.journal.entries[known:]
        # A branch that ended in a checkpoint before a step begins the step in the replay, while others ask.
        went_on = all("/" in entry.key for entry in further)
        same = before == played.journal.entries and again.journal.outstanding == played.journal.outstanding
        if not same or not went_on or again.asked.keys() != played.asked.keys():
            shown = json_diff(
                _questions_and_journal(played), _questions_and_journal(again), ("the round", "its replay")
            )
            raise NotReplayable(f"{played.method}: a replay asked or recorded something else:\n{shown}")

    def _round(self, method: str, params: Mapping[str, Any], sent: Mapping[str, Any]) -> Round:
        observer = RequestObserver(self.observer)
        message, notifications, journal, status = self._post(method, sent, observer)
        raised, changed = next(reversed(observer.errors), None), tuple(observer.changed)
        return Round(self, method, params, message, notifications, journal, status, raised, changed)

    def _post(
        self, method: str, params: Mapping[str, Any], observer: RequestObserver | None = None
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...], Journal | None, int]:
        number = next(self._ids)
        meta: dict[str, Any] = {
            META_PROTOCOL_VERSION: PROTOCOL_VERSION,
            META_CLIENT_INFO: {"name": "mcp-roundtrip-testing", "version": "1"},
            META_CLIENT_CAPABILITIES: self.capabilities,
            "progressToken": number,
            **self.meta,
        }
        if self.log_level is not None:
            meta[META_LOG_LEVEL] = self.log_level
        body = json.dumps(
            {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
        )
        sealed = RecordingCodec(make_codec(self.key, self.clock))
        server = load_server(self.source)
        headers = {**_headers(method, params), **_parameter_headers(server, method, params)}
        ports = replace(self._ports(), state_codec=lambda: sealed)
        if observer is not None:
            ports = replace(ports, observer=observer)
        response = self._environment(server, ports, HttpRequest("POST", headers, body, self.authorizer))
        *notifications, answer = _messages(response)
        journal = sealed.journals[-1] if sealed.journals else None
        return answer, tuple(notifications), journal, response.status

    def _environment(self, server: Server, ports: Ports, request: HttpRequest) -> HttpResponse:
        # Without remaining time, each step after the first ends in a checkpoint before it runs.
        remaining_ms = 0 if self.always_replay else self.remaining_ms
        invocation = Invocation("test", self.clock.monotonic_ms() + remaining_ms)
        return server.endpoint.respond(request, ports, invocation)

    def _ports(self) -> Ports:
        given = {"max_rounds": 1_000} if self.always_replay else {}
        return make_ports(
            clock=self.clock,
            observer=self.observer,
            key=self.key,
            **{**given, "tasks": self.table, **self.ports},
        )


def _questions_and_journal(played: Round) -> dict[str, Any]:
    """Return the questions and journal entries of a round as JSON data."""
    entries = played.journal.entries if played.journal is not None else ()
    recorded = [
        {"key": entry.key, "kind": entry.kind.name.lower(), "value": entry.value} for entry in entries
    ]
    return {"asked": dict(played.asked), "recorded": recorded}


def _headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": PROTOCOL_VERSION,
        "mcp-method": method,
    }
    name = params.get(NAME_PARAMETER.get(method, ""))
    if name is not None:
        headers["mcp-name"] = encode_header(name)
    return headers


def _parameter_headers(server: Server, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    tool = server.tools.get(str(params.get("name"))) if method == TOOLS_CALL else None
    if tool is None or not isinstance(params.get("arguments"), Mapping):
        return {}
    return build_parameter_headers(tool.parameters.parameter_headers, params["arguments"])


def _messages(response: HttpResponse) -> list[Mapping[str, Any]]:
    if response.headers.get("content-type") == "text/event-stream":
        return [json.loads(line[6:]) for line in response.body.splitlines() if line.startswith("data: ")]
    return [json.loads(response.body)]
