"""The record of what happened: the newest trees of requests and invocations, in memory."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from uuid import uuid4

from mcp_roundtrip_tools.run.observation.records import (
    Began,
    Changes,
    Ended,
    Event,
    Headers,
    HttpExchange,
    InvocationNode,
    LogLine,
    Note,
    Printed,
    RecordedInvocation,
    ServiceCall,
    Tree,
)

MAX_TREES: Final = 1_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""The bodies, headers, lines and calls that are kept, in bytes."""

CALL_BYTES: Final = 400
"""About what a call of a service takes in memory."""

Listener = Callable[[Event], None]

_WAITED_FOR: Final = ("http", "invoke")
"""The triggers of invocations that belong to their caller's tree."""


class RunRecorder:
    """Keeps the newest trees, and passes events to its listeners. Thread-safe.

    The oldest trees are dropped when there are more than `max_trees`, or when they exceed `max_bytes`; those
    that have ended first. What happens in a dropped tree is not kept. `run_id` is another one in each run.
    """

    def __init__(
        self,
        *listeners: Listener,
        max_trees: int = MAX_TREES,
        max_bytes: int = MAX_BYTES,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self.run_id = str(uuid4())
        self.now_ms = now_ms
        self._listeners = listeners
        self._max_trees = max_trees
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._sequence = 0
        self._size = 0
        self._trees: dict[str, Tree] = {}
        self._nodes: dict[str, InvocationNode] = {}

    # What happens

    def begin_exchange(self, exchange: HttpExchange) -> None:
        """Record a request."""
        with self._changed:
            self._add(
                Tree(exchange.id, exchange), len(exchange.request_body) + _size(exchange.request_headers)
            )
        self._tell(Began(exchange))

    def end_exchange(self, exchange_id: str, status: int, headers: Headers, body: bytes) -> None:
        """Record the response to a request."""
        with self._changed:
            tree = self._trees.get(exchange_id)
            if tree is None or tree.exchange is None:
                return
            tree.exchange = replace(
                tree.exchange,
                duration_ms=self.now_ms() - tree.exchange.started_at_ms,
                status=status,
                response_headers=headers,
                response_body=body,
            )
            self._touch(tree, len(body) + _size(headers))
            ended = Ended(tree.freeze())
        self._tell(ended)

    def begin_invocation(self, invocation: RecordedInvocation) -> str:
        """Record the start of an invocation, and return its id, which differs if the id is taken.

        It belongs to the tree of its caller if that waits for its result.
        """
        with self._changed:
            record = replace(invocation, id=self._free_id(invocation.id))
            siblings, tree = self._place(record)
            node = InvocationNode(record, tree)
            siblings.append(node)
            tree.ids.append(record.id)
            self._nodes[record.id] = node
            if is_root := record.id == tree.id:
                self._add(tree, len(record.payload))
            else:
                self._touch(tree, len(record.payload))
        if is_root:
            self._tell(Began(record))
        return record.id

    def end_invocation(
        self, invocation_id: str, response: bytes, *, error: str | None, init_ms: float | None
    ) -> None:
        """Record the end of an invocation. `error` is None if it succeeded."""
        with self._changed:
            node = self._nodes.get(invocation_id)
            if node is None:
                return
            node.record = replace(
                node.record,
                init_ms=init_ms,
                duration_ms=self.now_ms() - node.record.started_at_ms,
                response=response,
                failed=error is not None,
                error=error,
            )
            self._touch(node.tree, len(response))
            ended = Ended(node.tree.freeze()) if node.tree.id == invocation_id else None
        if ended is not None:
            self._tell(ended)

    def add_service_call(self, invocation_id: str, call: ServiceCall) -> None:
        """Record a call of an invocation to an AWS service."""
        with self._changed:
            if node := self._nodes.get(invocation_id):
                node.service_calls.append(call)
                self._touch(node.tree, CALL_BYTES)

    def add_line(self, invocation_id: str, text: str, *, function: str, environment_id: str) -> None:
        """Record a line that a function printed during an invocation."""
        line = LogLine(self.now_ms(), text)
        root_id = invocation_id
        with self._changed:
            if node := self._nodes.get(invocation_id):
                root_id = node.tree.id
                self._touch(node.tree, node.add_line(line))
        self._tell(Printed(root_id, function, environment_id, line))

    def note(self, text: str) -> None:
        """Pass a note of the local runner to the listeners. It is not kept."""
        self._tell(Note(self.now_ms(), text))

    # What has happened

    def exchange(self, exchange_id: str) -> HttpExchange | None:
        """Return a request with its invocations; None if it is unknown or dropped."""
        with self._changed:
            tree = self._trees.get(exchange_id)
            found = tree.freeze() if tree is not None else None
        return found if isinstance(found, HttpExchange) else None

    def invocation(self, invocation_id: str) -> RecordedInvocation | None:
        """Return an invocation with those for which it waited; None if it is unknown or dropped."""
        with self._changed:
            node = self._nodes.get(invocation_id)
            return None if node is None else node.freeze()

    def exchanges(self) -> tuple[HttpExchange, ...]:
        """Return all requests in the order of their start."""
        with self._changed:
            trees = [tree for tree in self._trees.values() if tree.exchange is not None]
            return tuple(found for tree in trees if isinstance(found := tree.freeze(), HttpExchange))

    def background_invocations(self) -> tuple[RecordedInvocation, ...]:
        """Return the invocations for whose result nothing waits, in the order of their start."""
        with self._changed:
            trees = [tree for tree in self._trees.values() if tree.exchange is None]
            return tuple(tree.invocations[0].freeze() for tree in trees)

    def wait_after(self, sequence: int, timeout_s: float) -> Changes:
        """Return what changed after `sequence`. Wait at most `timeout_s` for a change.

        A sequence number from another run returns everything.
        """
        with self._changed:
            if sequence > self._sequence:
                sequence = 0
            self._changed.wait_for(lambda: self._sequence > sequence, timeout_s)
            trees = [tree for tree in self._trees.values() if tree.changed > sequence]
            return Changes(
                self._sequence,
                tuple(tree.id for tree in trees if tree.exchange is not None),
                tuple(tree.id for tree in trees if tree.exchange is None),
            )

    def _place(self, invocation: RecordedInvocation) -> tuple[list[InvocationNode], Tree]:
        """Return the list to which an invocation belongs, and its tree, which is new for a root."""
        caller = invocation.caller
        if caller is not None and invocation.trigger in _WAITED_FOR:
            if caller in self._nodes:
                return self._nodes[caller].invocations, self._nodes[caller].tree
            if caller in self._trees:
                return self._trees[caller].invocations, self._trees[caller]
        tree = Tree(invocation.id, None)
        return tree.invocations, tree

    def _free_id(self, wanted: str) -> str:
        number, found = 1, wanted
        while found in self._nodes:
            number += 1
            found = f"{wanted}#{number}"
        return found

    def _add(self, tree: Tree, size: int) -> None:
        self._trees[tree.id] = tree
        self._touch(tree, size)

    def _touch(self, tree: Tree, size: int) -> None:
        """Note a change of a tree that adds `size` bytes."""
        if tree.id not in self._trees:  # dropped
            return
        tree.size += size
        self._size += size
        self._sequence += 1
        tree.changed = self._sequence
        while len(self._trees) > 1 and (len(self._trees) > self._max_trees or self._size > self._max_bytes):
            self._drop(self._first_to_drop())
        self._changed.notify_all()

    def _first_to_drop(self) -> str:
        """Return the oldest tree that has ended; if none has, the oldest."""
        ended = (tree.id for tree in self._trees.values() if tree.has_ended)
        return next(ended, next(iter(self._trees)))

    def _drop(self, tree_id: str) -> None:
        tree = self._trees.pop(tree_id)
        self._size -= tree.size
        for invocation_id in tree.ids:
            del self._nodes[invocation_id]

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # a defect of a listener must not fail the request
                traceback.print_exc()


def _size(headers: Headers) -> int:
    return sum(len(name) + len(value) for name, value in headers)
