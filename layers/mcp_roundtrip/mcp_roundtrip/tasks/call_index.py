"""The items that name the task as which a call continues.

A client that knows no task id sends its call or its round again. The key of such an item is a digest of what
the repetition has in common with the request before. Item and task are written in one transaction: of
concurrent requests, one creates a task, and the others find it.

- **A parked call** is found by its caller, tool and arguments (`parked`).
- **A flow** is found by its id, which is in each of its signed states. So a round that is sent again, because
  its response was lost or with other answers, continues as the one task of its flow. mrtr: "Servers for which
  a given `requestState` must be consumed at most once MUST enforce that invariant".

==========  ==============================================================================================
attribute   holds
==========  ==============================================================================================
call        the partition key of the task
exp         when DynamoDB may delete the item, in epoch seconds
==========  ==============================================================================================
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mcp_roundtrip.protocol import canonical
from mcp_roundtrip.tasks.changes import Absent, Change, Equals
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.store import TaskStore, Update

INDEX: Final = "C"
"""The sort key of the items."""


class Flow(Struct, frozen=True):
    """A flow of which the client has a state.

    `principal` is the caller's canonical JSON, None for anonymous callers. From `ends_at_s` (epoch seconds)
    on, no state of the flow is accepted.
    """

    principal: str | None
    id: str
    ends_at_s: int

    @property
    def index_key(self) -> str:
        """The partition key of the item that names its task."""
        return canonical.digest("mcp-rs/v1/flow", [self.principal, self.id], size=24)


def named_task(store: TaskStore, index_key: str) -> str | None:
    """Return the partition key of the task that the item names, or None. Raises StoreError."""
    index = store.get(index_key, INDEX)
    return None if index is None else str(index["call"])


def is_stored(store: TaskStore, flow: Flow | None) -> bool:
    """Return whether a round of the flow has become a task or was parked. Raises StoreError."""
    return flow is not None and named_task(store, flow.index_key) is not None


def name_task(index_key: str, task: Task, instead_of: str | None = None) -> Update:
    """Return the update that names a new task, if the item still names none, or the task `instead_of`."""
    condition = Absent("call") if instead_of is None else Equals("call", instead_of)
    return Update(index_key, INDEX, Change(condition, set={"call": task.pk, "exp": task.expires_s}))
