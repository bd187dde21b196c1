"""Which invocation wrote which item of a task: journal entries, and the responses of clients.

The table does not store it. Keys are kept, values are not.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.tasks.model import ENTRY, INPUT
from mcp_roundtrip_tools.run.http.messages import Request, Response

MAX_WRITES: Final = 20_000
"""The writes that are remembered; the oldest are forgotten first."""

_OPERATIONS: Final = ("DynamoDB_20120810.PutItem", "DynamoDB_20120810.TransactWriteItems")

Respond = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class JournalWrite:
    """The first write of an item. `invocation` is the id of the invocation that wrote it, if it is known."""

    at_ms: float
    invocation: str | None


class JournalWrites:
    """Watches the requests to DynamoDB. Thread-safe. `invocation` returns the id of the one that asks."""

    def __init__(self, invocation: Callable[[], str | None]) -> None:
        self._invocation = invocation
        self._writes: dict[tuple[str, str], JournalWrite] = {}
        self._lock = threading.Lock()

    def watch(self, respond: Respond) -> Respond:
        """Return `respond` with the writes that succeed remembered."""

        def watched(request: Request) -> Response:
            response = respond(request)
            if response.status == 200 and request.header("x-amz-target") in _OPERATIONS:
                self._remember(request.body)
            return response

        return watched

    def of(self, pk: str) -> dict[str, JournalWrite]:
        """Return the writes in a partition by sort key."""
        with self._lock:
            return {sort_key: write for (found, sort_key), write in self._writes.items() if found == pk}

    def _remember(self, body: bytes) -> None:
        if b'"J#' not in body and b'"I#' not in body:
            return
        write = JournalWrite(time.time() * 1000, self._invocation())
        with self._lock:
            for key in _keys(body):
                # A replaced item has its first writer: journal entries are written once.
                self._writes.setdefault(key, write)
            while len(self._writes) > MAX_WRITES:
                del self._writes[next(iter(self._writes))]


def _keys(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield partition key and sort key of the journal items that a request puts."""
    document: Any = json.loads(body)
    puts = [document, *(part.get("Put", {}) for part in document.get("TransactItems", ()))]
    for put in puts:
        item: Mapping[str, Any] = put.get("Item", {})
        pk, sort_key = (item.get(name, {}).get("S", "") for name in ("pk", "sk"))
        if sort_key.startswith((ENTRY, INPUT)):
            yield pk, sort_key
