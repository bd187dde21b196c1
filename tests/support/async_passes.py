"""Passes over an asynchronous body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.async_replay import async_replay
from mcp_roundtrip.engine.outcome import Checkpointed, NeedsInput, Outcome
from support.passes import Passes


class AsyncPasses(Passes):
    """`Passes`, each in an event loop of its own."""

    body: Callable[[AsyncContext], Any]

    def __call__(self, **inputs: Any) -> Outcome:
        run = self.make_run(inputs)
        body = self.body
        outcome = asyncio.run(
            async_replay(lambda branches: body(AsyncContext(run, self.info, branches)), run)
        )
        if isinstance(outcome, NeedsInput | Checkpointed):
            self.journal = outcome.journal
        return outcome
