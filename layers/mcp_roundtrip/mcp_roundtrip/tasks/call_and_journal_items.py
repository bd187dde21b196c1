"""The items of a task besides its own: call, journal, responses, chunks of the result, and what names it.

A client that knows no task id sends its call or its round again. An item names the task in `call`; its key is
a digest of what both requests have in common. Item and task are written in one transaction: of concurrent
requests, one creates a task, and the others find it.

- **A parked call** is found by its caller, tool and arguments (`parked_calls`).
- **A flow** is found by its id, which is in each of its signed states. So a round that is sent again, because
  its response was lost or with other answers, continues as the one task of its flow. mrtr: "Servers for which
  a given `requestState` must be consumed at most once MUST enforce that invariant".
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.tasks.model import (
    CALL,
    CLIENT,
    ENTRY,
    INPUT,
    RESULT,
    TASK,
    OutstandingRequest,
    Task,
    json_value,
)
from mcp_roundtrip.tasks.store_interface import Absent, Change, Equals, Item, TaskStore, Update, Value

MAX_INLINE_RESULT = 100_000
"""The longest result, in characters of JSON, in a task's own item. Each poll reads it."""

RESULT_CHUNK = 350_000
"""The bytes of a chunk of a result, below the limit of an item."""


class TaskCall(Struct, frozen=True):
    """The request that became a task. It contains no token.

    `principal` has the fields of a Principal, `client` is the `clientInfo` of the request, `server_info`
    names the server in the result.
    """

    method: str
    name: str
    arguments: Mapping[str, Any]
    principal: Sequence[Any] | None
    client: Mapping[str, Any] | None
    server_info: Mapping[str, Any] = field(default_factory=dict)
    trace: Mapping[str, Any] = field(default_factory=dict)

    def to_item(self, task: Task) -> dict[str, Value]:
        return _item(task, CALL, v=compact_json(astuple(self)))

    @classmethod
    def from_item(cls, item: Item) -> TaskCall:
        return cls(*json_value(item["v"]))


def entry_to_item(task: Task, entry: Entry, order: int) -> dict[str, Value]:
    """Return the item of a journal entry; `order` is its position in the journal."""
    item = _item(task, ENTRY + entry.key, n=order, k=entry.kind.value, v=compact_json(entry.value))
    return item if entry.fingerprint is None else {**item, **_fingerprint(entry.fingerprint)}


def entry_from_item(item: Item) -> Entry:
    """Return the journal entry in an item, or the answer in the item of a response."""
    fingerprint = (str(item["qm"]), str(item["qf"])) if "qm" in item else ()
    if _is_response(item):
        return Entry(str(item["key"]), Kind.ANSWER, json_value(item["v"]), *fingerprint)
    key, kind = str(item["sk"]).removeprefix(ENTRY), Kind(str(item["k"]))
    return Entry(key, kind, json_value(item["v"]), *fingerprint)


def response_to_item(
    task: Task,
    wire_key: str,
    asked: OutstandingRequest,
    raw: Any,
    via: str = CLIENT,
    submission: str | None = None,
) -> dict[str, Value]:
    """Return the item of the response to an outstanding request; `via` is the channel of the response.

    A response without a `submission` counts at once, any other if the task names its submission.
    """
    item = _item(task, _response_key(wire_key, submission), n=asked.order, key=asked.key, v=compact_json(raw))
    channel: dict[str, Value] = {} if via == CLIENT else {"via": via}
    of_submission: dict[str, Value] = {} if submission is None else {"sub": submission, "wire": wire_key}
    return item | _fingerprint(asked.fingerprint) | channel | of_submission


def _response_key(wire_key: str, submission: str | None) -> str:
    return INPUT + wire_key if submission is None else f"{INPUT}{wire_key}~{submission}"


def _item(task: Task, sort_key: str, **members: Value) -> dict[str, Value]:
    return {"pk": task.pk, "sk": sort_key, "exp": task.expires_s, **members}


def _fingerprint(fingerprint: Fingerprint) -> dict[str, Value]:
    return {"qm": fingerprint.message, "qf": fingerprint.form}


class TaskHistory(Struct, frozen=True):
    """The stored call and journal of a task. All mappings are by journal key.

    `responses`: the responses that no pass has accepted yet.
    `response_keys`: the sort key, without prefix, of the last response.
    `next_order`: the position of the next journal entry.
    `response_channels`: the channel of each response that did not come from the client.
    """

    call: TaskCall
    journal: Journal
    responses: Mapping[str, Any]
    response_keys: Mapping[str, str]
    next_order: int
    response_channels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_items(cls, task: Task, items: Iterable[Item]) -> TaskHistory:
        by_sk = {str(item["sk"]): item for item in items}
        rows = sorted(
            (item for item in by_sk.values() if is_in_journal(task, item)),
            key=lambda item: (int(item["n"]), str(item["sk"])),
        )
        # A repeated request has several responses; the last one counts.
        response_keys = {str(row["key"]): _response_name(row) for row in rows if _is_response(row)}
        read = [(row, entry_from_item(row), _response_name(row)) for row in rows]
        # The pass that asked a question again, or took its default, has discarded what was recorded before.
        latest = {entry.key: name for _, entry, name in read}
        latest |= dict.fromkeys((asked.key for asked in task.requests.values()), "")
        entries: list[Entry] = []
        responses: dict[str, Any] = {}
        channels: dict[str, str] = {}
        outstanding: dict[str, Fingerprint] = {}
        for row, entry, name in read:
            if not _is_response(row) or name in task.accepted_keys:
                if entry.kind.is_effect or latest[entry.key] == name:
                    entries.append(entry)
            elif response_keys[entry.key] == name and entry.fingerprint is not None:
                responses[entry.key], outstanding[entry.key] = entry.value, entry.fingerprint
                if "via" in row:
                    channels[entry.key] = str(row["via"])
        journal = Journal(task.flow_id, tuple(entries), outstanding, trace=task.trace)
        next_order = max((int(row["n"]) for row in rows), default=-1) + 1
        call = TaskCall.from_item(by_sk[CALL])
        return cls(call, journal, responses, response_keys, next_order, channels)


def _is_response(row: Item) -> bool:
    return str(row["sk"]).startswith(INPUT)


def is_in_journal(task: Task, item: Item) -> bool:
    """Return whether an item is a journal entry, or a response whose submission answered its request."""
    if not str(item["sk"]).startswith((ENTRY, INPUT)):
        return False
    return "sub" not in item or task.submissions.get(str(item["wire"])) == item["sub"]


def _response_name(row: Item) -> str:
    return str(row["sk"]).removeprefix(INPUT)


def put_result(store: TaskStore, task: Task, owner: str, result: Mapping[str, Any]) -> dict[str, Value]:
    """Return the attributes of the task's item for a result; write the chunks of a large one.

    Chunks are keyed by lease owner, so a worker that lost its lease cannot overwrite another worker's result.
    """
    text = compact_json(result)
    if len(text) <= MAX_INLINE_RESULT:
        return {"res": text}
    packed = zlib.compress(text.encode("ascii"))
    starts = range(0, len(packed), RESULT_CHUNK)
    for number, start in enumerate(starts):
        store.put_new(_item(task, _chunk_key(owner, number), v=packed[start : start + RESULT_CHUNK]))
    return {"resn": len(starts), "reso": owner}


def _chunk_key(owner: str, number: int) -> str:
    return f"{RESULT}{owner}#{number:03}"


def join_result_chunks(chunks: Iterable[Item]) -> Any:
    packed = b"".join(chunk["v"] for chunk in chunks if isinstance(chunk["v"], bytes))
    return json_value(zlib.decompress(packed).decode("ascii"))


def put_history(store: TaskStore, task: Task, call: TaskCall, journal: Journal) -> None:
    """Write the call and the journal of a new task. Raises ItemTooLarge for the call or an entry."""
    items = [entry_to_item(task, entry, order) for order, entry in enumerate(journal.entries)]
    for order, (key, raw) in enumerate(journal.unused_responses.items(), len(items)):
        asked = OutstandingRequest(key, journal.outstanding[key], {}, order)
        items.append(response_to_item(task, key, asked, raw))
    store.put_all_new([*items, call.to_item(task)])


def read_task(store: TaskStore, pk: str) -> Task | None:
    item = store.get(pk, TASK)
    return None if item is None else Task.from_item(item)


def read_call(store: TaskStore, pk: str) -> TaskCall | None:
    item = store.get(pk, CALL)
    return None if item is None else TaskCall.from_item(item)


def with_result(store: TaskStore, task: Task) -> Task:
    """Return the task with its result, also if that is stored in chunks."""
    if not task.result_chunks:
        return task
    keys = (_chunk_key(task.result_owner, number) for number in range(task.result_chunks))
    chunks = [store.get(task.pk, key) for key in keys]
    return replace(task, result=join_result_chunks(chunk for chunk in chunks if chunk is not None))


def stored_responses(store: TaskStore, pk: str, wire_keys: Collection[str]) -> dict[str, Any]:
    """Return the responses to these requests that count, by wire key."""
    task = read_task(store, pk)
    submissions = {} if task is None else task.submissions
    sort_keys = {key: _response_key(key, submissions[key]) for key in wire_keys if key in submissions}
    items = {key: store.get(pk, sort_key) for key, sort_key in sort_keys.items()}
    return {key: json_value(item["v"]) for key, item in items.items() if item is not None}


INDEX: Final = "C"
"""The sort key of the items that name a task."""


class Flow(Struct, frozen=True):
    """A flow of which the client has a state. None of its states is accepted from `ends_at_s` on.

    `principal`: the `caller_binding`. `ends_at_s`: epoch seconds.
    """

    principal: str | None
    id: str
    ends_at_s: int

    @property
    def index_key(self) -> str:
        """The partition key of the item that names its task."""
        return strict_json.digest("mcp-rs/v1/flow", [self.principal, self.id], size=24)


def named_task(store: TaskStore, index_key: str) -> str | None:
    """Return the partition key of the task that the item names, or None."""
    index = store.get(index_key, INDEX)
    return None if index is None else str(index["call"])


def is_stored(store: TaskStore, flow: Flow | None) -> bool:
    """Return whether a round of the flow has become a task or was parked."""
    return flow is not None and named_task(store, flow.index_key) is not None


def name_task(index_key: str, task: Task, instead_of: str | None = None) -> Update:
    """Return the update that names a new task, if the item still names none, or the task `instead_of`."""
    condition = Absent("call") if instead_of is None else Equals("call", instead_of)
    return Update(index_key, INDEX, Change(condition, set={"call": task.pk, "exp": task.expires_s}))
