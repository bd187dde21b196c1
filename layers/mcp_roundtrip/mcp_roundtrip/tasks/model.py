"""The item of a task, and the keys of all its items.

==========  ==============================================================================================
sort key    content
==========  ==============================================================================================
M           the task itself (`Task`): status, lease, outstanding requests, result or error
A           the call (`items.TaskCall`), in an item of its own because polls do not need it
J#<key>     a journal entry, written once
I#<key>~s   a response to the request with that wire key, in the submission s, written once. It counts if the
            item M names it. Earlier revisions wrote I#<key>, which always counts
R#...       a chunk of a result that is too large for M
==========  ==============================================================================================

The names of attributes are stored, so they stay when fields are renamed. Those of M:

=====================  ===================================================================================
st, rn, ver            status, work state, version of the two
cAt, uAt, ttlms, dead  creation, last update, time to live, deadline
wk, run, caps, dl      worker, flow id, client capabilities, dialect
req, iss               outstanding requests, wire keys issued for each key
ans, acc               submissions by the wire keys that they answered, responses that a pass has accepted
lnk                    token of the link to the outstanding requests of channel "page" (`question_links`)
lo, lu, lr             lease owner, lease end, id of the invocation or message that has the lease
att, seen              attempts, length of the journal at the last progress
kick, kicks, wake      last dispatch, dispatches since the last progress, wake-up time
msg, err               status message, error
res, resn, reso        result; or the number of its chunks, and the lease owner that wrote them
=====================  ===================================================================================

The partition key contains a digest of the dialect and the principal, so a task of another principal looks
like a missing one. All times are epoch milliseconds, except `exp`, the TTL attribute in epoch seconds;
DynamoDB deletes expired items late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_roundtrip.journal import Fingerprint
from mcp_roundtrip.protocol import canonical
from mcp_roundtrip.tasks.changes import Item, Value

TASK, CALL, ENTRY, INPUT, RESULT = "M", "A", "J#", "I#", "R#"
"""Sort keys, and prefixes of sort keys."""

RETENTION_MS: Final = 3_600_000
"""The time for which a task stays readable after the end of its time to live."""

CLIENT: Final = "client"
"""The channel of the requests that the client of a task answers. Other rows name their channel."""

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
    """Whether a worker can claim the task.

    READY: at once. LEASED: a worker runs it. AWAITING: it waits for input, and may have a wake-up time.
    SLEEPING: at its wake-up time. DONE: never.
    """

    READY = "R"
    LEASED = "L"
    AWAITING = "P"
    SLEEPING = "S"
    DONE = "D"


def task_partition_key(dialect: str, principal: str | None, task_id: str) -> str | None:
    """Return the partition key of a principal's task, or None for a malformed task id.

    `principal` is canonical JSON, None for anonymous callers. A task belongs to the dialect that created it.
    """
    if not _TASK_ID.fullmatch(task_id):
        return None
    return f"{canonical.digest('mcp-rs/v1/task', [dialect, principal], size=24)}#{task_id}"


class OutstandingRequest(Struct, frozen=True):
    """A request that waits for the client's response.

    `key` and `fingerprint` are the engine's, `request` is what the user is asked, `order` is the position of
    the response in the journal. `channel` is the way in which the user is asked (see `engine.channels`).
    """

    key: str
    fingerprint: Fingerprint
    request: Mapping[str, Any]
    order: int
    channel: str = CLIENT

    def to_json(self) -> list[Any]:
        row = [self.key, self.fingerprint.message, self.fingerprint.form, self.request, self.order]
        return row if self.channel == CLIENT else [*row, self.channel]

    @classmethod
    def from_json(cls, row: list[Any]) -> OutstandingRequest:
        key, message, form, request, order, *channel = row
        return cls(key, Fingerprint(message, form), request, order, *channel)


class Task(Struct, frozen=True):
    """A task, as in its item M.

    `requests` has the outstanding requests by wire key, `submissions` the id of the submission that answered
    each other request, `accepted_keys` the sort keys, without prefix, of the responses that a pass has
    accepted, `issued_counts` the number of wire keys for each journal key. `attempts` counts the
    workers since the last progress, `seen_entries` is the length of the journal at that time. `trace` is the
    journal's, `created_in` the span context in which the task was created, if these were traced. DynamoDB may
    delete its items from `expires_s` (epoch seconds) on.
    """

    pk: str
    status: Status
    work_state: WorkState
    version: int
    created_at_ms: int
    updated_at_ms: int
    ttl_ms: int
    expires_s: int
    worker: str
    flow_id: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, OutstandingRequest] = field(default_factory=dict)
    accepted_keys: tuple[str, ...] = ()
    issued_counts: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    seen_entries: int = 0
    lease_owner: str | None = None
    lease_until_ms: int | None = None
    lease_delivery: str | None = None
    dispatched_at_ms: int = 0
    dispatch_count: int = 0
    wake_at_ms: int | None = None
    message: str | None = None
    result: Any = None
    result_chunks: int = 0
    result_owner: str = ""
    error: Mapping[str, Any] | None = None
    dialect: str = "extension"
    link: str | None = None
    trace: str | None = None
    created_in: str | None = None
    submissions: Mapping[str, str] = field(default_factory=dict)

    @property
    def task_id(self) -> str:
        return self.pk.partition("#")[2]

    @property
    def deadline_ms(self) -> int:
        """The end of its time to live."""
        return self.created_at_ms + self.ttl_ms

    @property
    def claimable_at_ms(self) -> int | None:
        """When a worker can claim it, if it does not change: 0 for at once, None for never."""
        match self.work_state:
            case WorkState.READY:
                return 0
            case WorkState.LEASED if self.lease_until_ms is not None:
                return self.lease_until_ms + 1
            case WorkState.SLEEPING | WorkState.AWAITING:
                return self.wake_at_ms
        return None

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def as_created(self) -> Task:
        """The task as each CreateTaskResult has it: clients read what happened since with `tasks/get`."""
        return replace(self, status=Status.WORKING, updated_at_ms=self.created_at_ms, message=None)

    @property
    def client_requests(self) -> dict[str, Mapping[str, Any]]:
        """The outstanding requests that its client answers, by wire key."""
        return {name: asked.request for name, asked in self.requests.items() if asked.channel == CLIENT}

    @property
    def visible_status(self) -> Status:
        """The status for its client, which cannot answer requests of other channels."""
        return Status.WORKING if self.waits_for_page else self.status

    @property
    def waits_for_page(self) -> bool:
        """Whether the user has to answer at its link before it can continue."""
        waits = self.status is Status.INPUT_REQUIRED
        return waits and self.link is not None and not self.client_requests

    def to_item(self) -> dict[str, Value]:
        """Return the item of a new task."""
        optional = {"lnk": self.link, "tr": self.trace, "tc": self.created_in}
        return {
            **{name: value for name, value in optional.items() if value is not None},
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
            "caps": canonical.compact_json(self.capabilities),
            "req": requests_to_text(self.requests),
            "acc": canonical.compact_json(list(self.accepted_keys)),
            "iss": canonical.compact_json(self.issued_counts),
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
            expires_s=read["exp"],
            worker=read["wk"],
            flow_id=read["run"],
            capabilities=canonical.parse_json(read["caps"]),
            requests=requests_from_text(read["req"]),
            accepted_keys=tuple(canonical.parse_json(read["acc"])),
            issued_counts=canonical.parse_json(read["iss"]),
            attempts=read["att"],
            seen_entries=read.get("seen", 0),
            lease_owner=read.get("lo"),
            lease_until_ms=read.get("lu"),
            lease_delivery=read.get("lr"),
            dispatched_at_ms=read["kick"],
            dispatch_count=read["kicks"],
            wake_at_ms=read.get("wake"),
            message=read.get("msg"),
            result=json_value(read.get("res", "null")),
            result_chunks=read.get("resn", 0),
            result_owner=read.get("reso", ""),
            error=json_value(read.get("err", "null")),
            dialect=read["dl"],
            link=read.get("lnk"),
            trace=read.get("tr"),
            created_in=read.get("tc"),
            submissions=canonical.parse_json(read.get("ans", "{}")),
        )


def requests_to_text(requests: Mapping[str, OutstandingRequest]) -> str:
    """Return the JSON text that stores outstanding requests."""
    return canonical.compact_json({name: asked.to_json() for name, asked in requests.items()})


def requests_from_text(text: str) -> dict[str, OutstandingRequest]:
    """Read the JSON text that `requests_to_text` wrote."""
    return {name: OutstandingRequest.from_json(row) for name, row in json_value(text).items()}


def json_value(text: Value) -> Any:
    """Parse the JSON text of an attribute, which may be deeper than a request: it adds levels."""
    return canonical.parse_json(str(text), max_depth=2 * canonical.MAX_DEPTH)
