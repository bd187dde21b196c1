"""The approval system that functions/approval talks to."""

from __future__ import annotations

import json

from mcp_roundtrip.local.model import Reply, Request


class ApprovalSystem:
    """A web service that keeps decisions, and says `broken` instead where a test wants it to."""

    def __init__(self) -> None:
        self.decisions: dict[str, bool] = {}
        self.broken: Reply | None = None

    def __call__(self, request: Request) -> Reply:
        reference, wanted = request.target.split("/")[-2:]
        assert (request.method, wanted) == ("GET", "decision")
        if self.broken is not None:
            return self.broken
        if reference not in self.decisions:
            return Reply(404)
        return Reply(200, body=json.dumps({"approved": self.decisions[reference]}).encode())
