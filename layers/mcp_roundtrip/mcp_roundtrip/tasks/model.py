"""The item of a task, and the keys of all its items.

==========  ==============================================================================================
sort key    content
==========  ==============================================================================================
M           the task itself (`Task`): status, lease, outstanding requests, result or error
A           the call (`call_and_journal_items.TaskCall`), in an item of its own because polls do not need it
J#<key>     a journal entry, written once
I#<key>~s   a response to the request with that wire key, in the submission s, written once. It counts if the
            item M names it. I#<key> is one that the journal had when the task was created
R#...       a chunk of a result that is too large for M
==========  ==============================================================================================

Each field of `Task` names its attribute. These names are stored, so they stay when fields are renamed.

The partition key contains a digest of the dialect and the principal, so a task of another principal looks
like a missing one. All times are epoch milliseconds, except `exp`, the TTL attribute in epoch seconds;
DynamoDB deletes expired items late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from mcp_roundtrip.engine.journal import Fingerprint
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.tasks.store_interface import Item, Value

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
    """Return the partition key of the task of a principal (canonical JSON); None for a malformed task id."""
    if not _TASK_ID.fullmatch(task_id):
        return None
    return f"{strict_json.digest('mcp-rs/v1/task', [dialect, principal], size=24)}#{task_id}"


def task_id_in(partition_key: str) -> str:
    return partition_key.partition("#")[2]


class OutstandingRequest(Struct, frozen=True):
    """A request that waits for its response. `order`: the position of the response in the journal."""

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


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task, as in its item M.

    `worker`: the address to which its workers are dispatched; empty for a parked call.
    `message`: its `statusMessage`.
    `requests`: the outstanding requests by wire key.
    `submissions`: the id of the submission that answered each other request, by wire key.
    `accepted_keys`: the sort keys, without prefix, of the responses that a pass has accepted.
    `issued_counts`: the number of wire keys for each journal key.
    `attempts`: the workers since the last progress; `seen_entries` is the length of the journal then.
    `link`: the token of the link to the outstanding requests of "page" and "app" (`question_page_tokens`).
    `result_owner`: the lease owner that wrote the chunks of a large result.
    `trace`: the journal's; `created_in`: the span context in which the task was created. None if not traced.
    """

    pk: str
    status: Status = field(name="st")
    work_state: WorkState = field(name="rn")
    version: int = field(name="ver")
    created_at_ms: int = field(name="cAt")
    updated_at_ms: int = field(name="uAt")
    ttl_ms: int = field(name="ttlms")
    expires_s: int = field(name="exp")
    worker: str = field(name="wk")
    flow_id: str = field(name="run")
    capabilities: Mapping[str, Any] = field(name="caps")
    requests: Mapping[str, OutstandingRequest] = field(name="req")
    accepted_keys: tuple[str, ...] = field(name="acc")
    issued_counts: Mapping[str, int] = field(name="iss")
    attempts: int = field(name="att")
    dispatched_at_ms: int = field(name="kick")
    dispatch_count: int = field(name="kicks")
    dialect: str = field(name="dl")
    # The item of a new task has none of these.
    seen_entries: int = field(default=0, name="seen")
    lease_owner: str | None = field(default=None, name="lo")
    lease_until_ms: int | None = field(default=None, name="lu")
    lease_delivery: str | None = field(default=None, name="lr")
    wake_at_ms: int | None = field(default=None, name="wake")
    message: str | None = field(default=None, name="msg")
    result: Any = field(default=None, name="res")
    result_chunks: int = field(default=0, name="resn")
    result_owner: str = field(default="", name="reso")
    error: Mapping[str, Any] | None = field(default=None, name="err")
    link: str | None = field(default=None, name="lnk")
    trace: str | None = field(default=None, name="tr")
    created_in: str | None = field(default=None, name="tc")
    submissions: Mapping[str, str] = field(default_factory=dict, name="ans")

    @property
    def task_id(self) -> str:
        return task_id_in(self.pk)

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
        return self.status in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)

    @property
    def as_created(self) -> Task:
        """The task as each CreateTaskResult has it: clients read what happened since with `tasks/get`."""
        return replace(self, status=Status.WORKING, updated_at_ms=self.created_at_ms, message=None)

    @property
    def client_requests(self) -> dict[str, Mapping[str, Any]]:
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
        item: dict[str, Value] = to_builtins(self)
        item |= {name: strict_json.compact_json(item[name]) for name in _JSON & item.keys()}
        return {**item, "sk": TASK, "dead": self.deadline_ms, "req": requests_to_text(self.requests)}

    @classmethod
    def from_item(cls, item: Item) -> Task:
        read = {name: json_value(item[name]) for name in _JSON & item.keys()}
        rows = json_value(item["req"]).items()
        requests = {name: OutstandingRequest.from_json(row) for name, row in rows}
        return convert({**item, **read, "req": requests}, cls)


_JSON: Final = frozenset({"caps", "acc", "iss", "res", "err", "ans"})
"""The attributes that hold JSON text, besides `req`."""


def requests_to_text(requests: Mapping[str, OutstandingRequest]) -> str:
    return strict_json.compact_json({name: asked.to_json() for name, asked in requests.items()})


def json_value(text: Value) -> Any:
    """Parse the JSON text of an attribute, which may be deeper than a request: it adds levels."""
    return strict_json.parse_json(str(text), max_depth=2 * strict_json.MAX_DEPTH)
