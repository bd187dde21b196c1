"""A function whose tool has an effect, for a process of its own, which kills itself beside the effect."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from mcp_roundtrip import Context, Server
from support.lambda_context import LambdaContext
from support.messages import call


def charge(effects: Path, dies: str | None) -> Any:
    """Call the tool, and return the response. `dies`: "before" or "after" the effect.

    The log stream of the process is its id, so that the server of the log can kill it.
    """
    os.environ["AWS_LAMBDA_LOG_STREAM_NAME"] = str(os.getpid())
    server = Server("audited")

    def effect() -> None:
        if dies == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        with effects.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if dies == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    @server.tool
    def charge(ctx: Context) -> str:
        ctx.step("charge", effect)
        return "charged"

    return server.lambda_handler(call("charge"), LambdaContext(remaining_ms=20_000))
