"""What a task's items hold.

==========  ==============================================================================================
sort key    holds
==========  ==============================================================================================
M           the task itself (`Task`): status, lease, outstanding requests, result or error
A           the call (`TaskCall`): method, params, and who made it; polls do not pay for reading it
J#<key>     an entry of the journal, written once
I#<key>     the client's answer to the request of that key, written once
R#...       a chunk of a result that is too large for M
==========  ==============================================================================================

The partition key contains a digest of the dialect and the principal, so somebody else's task looks exactly
like no task. All times are epoch milliseconds, but for `exp`: DynamoDB expires items by seconds, late, and
never before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from mcp_roundtrip import canonical
from mcp_roundtrip.engine.journal import Fingerprint
from mcp_roundtrip.tasks.changes import Item, Value

TASK, CALL, ENTRY, INPUT, RESULT = "M", "A", "J#", "I#", "R#"
"""Sort keys, and the beginnings of them."""

RETENTION_MS: Final = 3_600_000
"""How long a task stays readable after its time to live has ended: as failed, if it had not ended."""

_TASK_ID: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)


class Status(StrEnum):
    """TaskStatus, as the extension spells it."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class WorkState(StrEnum):
    """What a worker has to do with the task."""

    READY = "R"
    LEASED = "L"
    PARKED = "P"
    SLEEPING = "S"
    DONE = "D"


def partition_key(dialect: str, principal: str | None, task_id: str) -> str | None:
    """Where a task of this id and this principal (canonical JSON) lies; None for what is no task id.

    A task belongs to the dialect it was created in: the others tell of other statuses.
    """
    if not _TASK_ID.fullmatch(task_id):
        return None
    return f"{canonical.digest('mcp-rs/v1/task', [dialect, principal], size=24)}#{task_id}"


@dataclass(frozen=True, slots=True)
class OutstandingRequest:
    """An outstanding request: `key` and `fingerprint` are the engine's, `request` goes over the wire.

    `order` is its answer's place in the journal.
    """

    key: str
    fingerprint: Fingerprint
    request: Mapping[str, Any]
    order: int

    def to_json(self) -> list[Any]:
        return [self.key, self.fingerprint.message, self.fingerprint.form, self.request, self.order]

    @classmethod
    def from_json(cls, row: list[Any]) -> OutstandingRequest:
        key, message, form, request, order = row
        return cls(key, Fingerprint(message, form), request, order)


@dataclass(frozen=True, slots=True)
class Task:
    """The item M.

    `requests` are outstanding, by the key they have on the wire; `accepted` are the wire keys of answers that
    a finished pass has taken; `issued` counts the wire keys there have been for each of the engine's keys.
    """

    pk: str
    status: Status
    work_state: WorkState
    version: int
    created_at_ms: int
    updated_at_ms: int
    ttl_ms: int
    worker: str
    flow_id: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, OutstandingRequest] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    issued: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    seen: int = 0
    lease_owner: str | None = None
    lease_until_ms: int | None = None
    dispatched_at_ms: int = 0
    dispatch_count: int = 0
    wake_at_ms: int | None = None
    message: str | None = None
    result: Any = None
    result_chunks: int = 0
    result_owner: str = ""
    error: Mapping[str, Any] | None = None
    dialect: str = "extension"

    @property
    def task_id(self) -> str:
        return self.pk.partition("#")[2]

    @property
    def deadline_ms(self) -> int:
        """When its time to live ends."""
        return self.created_at_ms + self.ttl_ms

    @property
    def expires_s(self) -> int:
        """When the store forgets it and what belongs to it: epoch seconds."""
        return (self.deadline_ms + RETENTION_MS) // 1000

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    def to_item(self) -> dict[str, Value]:
        """The item of a new task."""
        return {
            "pk": self.pk,
            "sk": TASK,
            "st": self.status.value,
            "rn": self.work_state.value,
            "ver": self.version,
            "cAt": self.created_at_ms,
            "uAt": self.updated_at_ms,
            "ttlms": self.ttl_ms,
            "dead": self.deadline_ms,
            "exp": self.expires_s,
            "wk": self.worker,
            "run": self.flow_id,
            "caps": canonical.compact(self.capabilities),
            "req": requests_to_text(self.requests),
            "acc": canonical.compact(list(self.accepted)),
            "iss": canonical.compact(self.issued),
            "att": self.attempts,
            "kick": self.dispatched_at_ms,
            "kicks": self.dispatch_count,
            "dl": self.dialect,
        }

    @classmethod
    def from_item(cls, item: Item) -> Task:
        read: Any = item
        return cls(
            pk=read["pk"],
            status=Status(read["st"]),
            work_state=WorkState(read["rn"]),
            version=read["ver"],
            created_at_ms=read["cAt"],
            updated_at_ms=read["uAt"],
            ttl_ms=read["ttlms"],
            worker=read["wk"],
            flow_id=read["run"],
            capabilities=canonical.parse(read["caps"]),
            requests=requests_from_text(read["req"]),
            accepted=tuple(canonical.parse(read["acc"])),
            issued=canonical.parse(read["iss"]),
            attempts=read["att"],
            seen=read.get("seen", 0),
            lease_owner=read.get("lo"),
            lease_until_ms=read.get("lu"),
            dispatched_at_ms=read["kick"],
            dispatch_count=read["kicks"],
            wake_at_ms=read.get("wake"),
            message=read.get("msg"),
            result=json_value(read.get("res", "null")),
            result_chunks=read.get("resn", 0),
            result_owner=read.get("reso", ""),
            error=json_value(read.get("err", "null")),
            dialect=read["dl"],
        )


def requests_to_text(requests: Mapping[str, OutstandingRequest]) -> str:
    return canonical.compact({name: asked.to_json() for name, asked in requests.items()})


def requests_from_text(text: str) -> dict[str, OutstandingRequest]:
    return {name: OutstandingRequest.from_json(row) for name, row in json_value(text).items()}


def json_value(text: Value) -> Any:
    """What an attribute holds as JSON text: a value, and the levels around it that are ours."""
    return canonical.parse(str(text), max_depth=2 * canonical.MAX_DEPTH)
