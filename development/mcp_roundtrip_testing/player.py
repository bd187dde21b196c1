"""A client that plays calls in tests."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.protocol.constants import (
    DISCOVER,
    HEADER_SESSION_ID,
    INITIALIZE,
    META_LOG_LEVEL,
    PROMPTS_GET,
    RESOURCES_READ,
    TASKS_EXTENSION,
    TASKS_GET,
    TASKS_UPDATE,
    TOOLS_CALL,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.tools import Tool
from mcp_roundtrip.state.jws import LocalKey
from mcp_roundtrip_testing.client_profile import ClientProfile, check_capabilities
from mcp_roundtrip_testing.conversation import Conversation
from mcp_roundtrip_testing.execution_environments import (
    Application,
    Environment,
    Source,
    check_settings,
    unset_settings,
)
from mcp_roundtrip_testing.http_requests import Session, client_meta, mirrored_headers, post, read_messages
from mcp_roundtrip_testing.played_call import NotReplayable, describe_unasked_answers, json_diff
from mcp_roundtrip_testing.played_task import PlayedTask
from mcp_roundtrip_testing.ports import (
    STATE_KEYS,
    RecordingCodec,
    RecordingObserver,
    RequestObserver,
    make_codec,
    make_ports,
)
from mcp_roundtrip_testing.round import Round, join
from mcp_roundtrip_testing.task_table import FakeClock, TaskTable
from mcp_roundtrip_testing.workers import Workers

__tracebackhide__ = True  # pytest shows the line of the test

_log = logging.getLogger(__name__)

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
    """Plays a client with these `capabilities`, or the released `client` of this name (see `client_profile`).

    `source` is a server, a function that creates one, the path of a module that contains one, or a front door
    with its `owners`. A module is loaded again for each round and each worker, so that its globals do not
    survive. With `always_replay`, each step ends in a checkpoint, and each state and each waiting task is
    replayed once without answers and must ask the same questions again.

    A request has `remaining_ms`, a worker `worker_ms`. `meta` are additional members of its `_meta`.
    `repeatable` counts the rounds with a state and the answers to tasks. The response to the one with the
    number `lost_response` (from 0) is lost, and the client sends it again.

    `task_table` is whether the deployment has a table of tasks, with a worker. By default the template.yaml
    above a module decides that, and what else a deployment of it lacks; otherwise there is a table. Raises
    TemplateError for a template that cannot be deployed. The first request raises SettingsError if a tool
    cannot work in the deployment, and warns (`SettingMissing`) if a tool can do less than its code says.
    """

    source: Application
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
    client: str | None = None
    owners: Mapping[str, Source] = field(default_factory=dict)
    lost_response: int | None = None
    task_table: bool | None = None
    repeatable: int = field(init=False, default=0)
    profile: ClientProfile | None = field(init=False, default=None)
    table: TaskTable = field(init=False)
    workers: Workers = field(init=False)
    _unset: frozenset[str] = field(init=False)
    _is_checked: bool = field(init=False, default=False)
    _session: Session | None = field(init=False, default=None)
    _warm: Environment | None = field(init=False, default=None)
    _ids: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        check_capabilities(self.capabilities)
        if self.client is not None:
            if self.always_replay:
                raise ValueError("always_replay leaves a request no time, and no client calls that often")
            self.profile = ClientProfile.load(self.client)
            self.capabilities = self.profile.capabilities
        if self.authorizer and "auth" not in self.ports:
            raise ValueError(
                "authorizer= has no effect without an authenticator; pass one, such as "
                'ports={"auth": EventAuthenticator(AuthMode.JWT)}'
            )
        self._unset = self._unset_settings()
        self.table = self.ports.get("tasks") or TaskTable(self.clock)
        self.workers = Workers(
            lambda: self._environment().server_tools,
            *(self._ports, self.table, self.observer, self.worker_ms, self.always_replay),
        )

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, /, **answers: Any) -> Round:
        """Call a tool. `answers` by key answer the questions of all rounds.

        With a `client`, the questions reach its user as they would in this client, and its model calls again
        until the call has ended or asks something that has no answer here. Raises CallFailed if a call
        without an error has not asked all of these questions.
        """
        if self.profile is not None:
            return Conversation(self, self.profile, dict(answers)).call(name, arguments or {})
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
            played = join(played, played.answer(**{key: left.pop(key) for key in ready}))
        has_failed = "error" in played.message or (played.failed and played.outcome != "arguments_refused")
        if left and not has_failed:
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
            return self._replay(played, sent)
        return played

    def request(self, method: str, **params: Any) -> Mapping[str, Any]:
        """Send any other request and return the JSON-RPC response."""
        return self._post(method, params)[0]

    def task(self, task_id: str) -> PlayedTask:
        """Return a task after its workers have run until it rests."""
        return PlayedTask(task_id, self.request, self.workers).poll()

    def _replay(self, played: Round, params: Mapping[str, Any]) -> Round:
        """Replay a round, and return it; if branches had steps left, return the round after them."""
        kept = {name: value for name, value in params.items() if name != "inputResponses"}
        again = self._round(played.method, played.params, {**kept, "requestState": played.state})
        if "result" not in again.message or again.journal is None or played.journal is None:
            text = f"{played.method}: the round asked {', '.join(played.asked)}, and in a replay"
            raise NotReplayable(f"{text} {again.describe_state()}") from again.raised
        known = len(played.journal.entries)
        before, further = again.journal.entries[:known], again.journal.entries[known:]
        asked, asked_again = played.journal.outstanding, again.journal.outstanding
        if before == played.journal.entries and asked.items() <= asked_again.items():
            if not further and len(asked) == len(asked_again):
                return played
            # A branch that ended in a checkpoint before a step continues in the replay, while others ask.
            if further and all("/" in entry.key for entry in further):
                return self._replay(again, kept)
        shown = json_diff(
            _questions_and_journal(played), _questions_and_journal(again), ("the round", "its replay")
        )
        raise NotReplayable(f"{played.method}: a replay asked or recorded something else:\n{shown}")

    def _round(self, method: str, params: Mapping[str, Any], sent: Mapping[str, Any]) -> Round:
        observer = RequestObserver(self.observer)
        message, notifications, journal, status = self._post(method, sent, observer)
        return Round(
            *(self, method, params, message, notifications, journal, status),
            cause=next(reversed(observer.errors), None),
            changed=tuple(observer.changed),
            log_fields=observer.completed,
        )

    def _post(
        self, method: str, params: Mapping[str, Any], observer: RequestObserver | None = None
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...], Journal | None, int]:
        if self.profile is not None and self._session is None:
            self._session = self._open(self.profile)
        if "requestState" in params or method == TASKS_UPDATE:
            request_number, self.repeatable = self.repeatable, self.repeatable + 1
            if request_number == self.lost_response:
                _log.warning("the response to %s was lost, and the client sent the request again", method)
                self._exchange(method, params, None)
        return self._exchange(method, params, observer)

    def _exchange(
        self, method: str, params: Mapping[str, Any], observer: RequestObserver | None
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...], Journal | None, int]:
        number = next(self._ids)
        sealed = RecordingCodec(make_codec(self.key, self.clock))
        # A poll runs no code of the module. Loading it for each would take a third of the time of `crashes`.
        if self._warm is None or method != TASKS_GET or not isinstance(self.source, Path):
            self._warm = self._environment()
        request = self._request(number, method, params, self._warm.tools)
        response = self._send(request, self._warm, sealed, observer)
        *notifications, answer = read_messages(response)
        journal = sealed.journals[-1] if sealed.journals else None
        return answer, tuple(notifications), journal, response.status

    def _request(
        self, number: int, method: str, params: Mapping[str, Any], tools: Mapping[str, Tool]
    ) -> HttpRequest:
        body = {"jsonrpc": "2.0", "id": number, "method": method}
        progress = {"progressToken": number, **self.meta}
        if self._session is not None and self._session.is_legacy:
            sent = {**params, "_meta": {**params.get("_meta", {}), **progress}}
            return post({**body, "params": sent}, self._session.headers, self.authorizer)
        info = {"name": "mcp-roundtrip-testing", "version": "1"}
        client = info if self.profile is None else self.profile.client_info
        meta = {**client_meta(client, self.capabilities), **progress}
        if self.log_level is not None:
            meta[META_LOG_LEVEL] = self.log_level
        headers = mirrored_headers(method, params, tools)
        return post({**body, "params": {**params, "_meta": meta}}, headers, self.authorizer)

    def _open(self, profile: ClientProfile) -> Session:
        """Send the first request of a client, and return what its later requests repeat."""
        if not profile.is_legacy:
            self._session = Session(profile.protocol_version)
            self.request(DISCOVER)
            return self._session
        params = {
            "protocolVersion": profile.protocol_version,
            "capabilities": profile.capabilities,
            "clientInfo": profile.client_info,
        }
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": INITIALIZE, "params": params}
        response = self._send(post(body, {}, self.authorizer))
        [message] = read_messages(response)
        session = Session(message["result"]["protocolVersion"], response.headers.get(HEADER_SESSION_ID))
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self._send(post(notification, session.headers, self.authorizer))
        return session

    def browse(self, method: str, url: str, body: str | None = None) -> HttpResponse:
        """Request a page of the application as a browser does; `body` is that of a form."""
        parts = urlsplit(url)
        headers = {"host": parts.netloc, "content-type": "application/x-www-form-urlencoded"}
        query = dict(parse_qsl(parts.query))
        return self._send(HttpRequest(method, headers, body, path=parts.path, query=query))

    def _send(
        self,
        request: HttpRequest,
        environment: Environment | None = None,
        codec: RecordingCodec | None = None,
        observer: RequestObserver | None = None,
    ) -> HttpResponse:
        ports = self._ports()
        if codec is not None and self._unset.isdisjoint(STATE_KEYS):
            ports = replace(ports, state_codec=lambda: codec)
        if observer is not None:
            ports = replace(ports, observer=observer)
        # Without remaining time, each step after the first ends in a checkpoint before it runs.
        remaining_ms = 0 if self.always_replay else self.remaining_ms
        return (environment or self._environment()).respond(request, ports, remaining_ms)

    def _environment(self) -> Environment:
        environment = Environment.load(self.source, self.owners)
        if not self._is_checked:
            check_settings(environment.entry.endpoint.needs, self._unset)
            self._is_checked = True
        return environment

    def _unset_settings(self) -> frozenset[str]:
        if self.task_table is not None or "tasks" in self.ports:
            return frozenset({"task_table"} if self.task_table is False else ())
        return unset_settings(self.source) if isinstance(self.source, Path) else frozenset()

    def _ports(self) -> Ports:
        given: dict[str, Any] = {"max_rounds": 1_000} if self.always_replay else {}
        if "task_table" not in self._unset:
            given["tasks"] = self.table
        return make_ports(
            clock=self.clock,
            observer=self.observer,
            key=self.key,
            unset=self._unset,
            **{**given, **self.ports},
        )


def _questions_and_journal(played: Round) -> dict[str, Any]:
    """Return the questions and journal entries of a round as JSON data."""
    entries = played.journal.entries if played.journal is not None else ()
    recorded = [
        {"key": entry.key, "kind": entry.kind.name.lower(), "value": entry.value} for entry in entries
    ]
    return {"asked": dict(played.asked), "recorded": recorded}
