"""The approval system that functions/approval talks to."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Lock

from mcp_roundtrip_local.http.messages import Reply, Request


class ApprovalSystem:
    """A web service that keeps decisions by reference until a call takes them.

    It says `broken` instead where a test wants it to. `looks` counts the questions about each reference, and
    `answered` is called with each request that was answered.
    """

    def __init__(self) -> None:
        self.decisions: dict[str, bool] = {}
        self.taken: dict[tuple[str, str], bool] = {}
        self.looks: dict[str, int] = {}
        self.broken: Reply | None = None
        self.answered: Callable[[Request], None] = lambda request: None
        self._lock = Lock()

    def __call__(self, request: Request) -> Reply:
        reference, wanted = request.target.split("/")[-2:]
        call = request.header("idempotency-key")
        assert (request.method in ("GET", "POST"), wanted) == (True, "decision")
        assert call
        if self.broken is not None:
            return self.broken
        with self._lock:
            approved = self._decision(request.method, reference, call)
        self.answered(request)
        if approved is None:
            return Reply(404)
        return Reply(200, body=json.dumps({"approved": approved}).encode())

    def _decision(self, method: str, reference: str, call: str) -> bool | None:
        if method == "GET":
            self.looks[reference] = self.looks.get(reference, 0) + 1
        elif (reference, call) not in self.taken and reference in self.decisions:
            self.taken[reference, call] = self.decisions.pop(reference)
        return self.taken.get((reference, call), self.decisions.get(reference))
