"""The runtime process of `make run DEBUG=1`: `breakpoint()` stops at the terminal that is the first argument.

It runs in the environment of a function, so it imports nothing of this package.
"""

import logging
import os
import pdb
import runpy
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

NO_LIMIT_S = 24 * 3600

LIMITS: dict[str, tuple[str, Any]] = {
    "mcp_roundtrip.entry.handler": ("request_deadline_ms", lambda now_ms, *_: now_ms + NO_LIMIT_S * 1000),
    "mcp_roundtrip.server.lambda_invocation": ("MAX_OWNER_TIMEOUT_S", NO_LIMIT_S),
}
"""The layer's time limits, which a person at the debugger's prompt would exceed."""


def stop_at(terminal: str) -> None:
    """Make `breakpoint()` read from a terminal of another session."""

    def breakpoint_at_terminal(*args: Any, **options: Any) -> None:
        # Without O_NOCTTY, the terminal may become that of this process.
        descriptor = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
        reading = os.fdopen(descriptor)
        writing = os.fdopen(os.dup(descriptor), "w")
        pdb.Pdb(stdin=reading, stdout=writing, nosigint=True).set_trace(sys._getframe(1))

    sys.breakpointhook = breakpoint_at_terminal


def lift_limits() -> None:
    """Replace the layer's time limits, if the function has the layer."""
    for name, (attribute, value) in LIMITS.items():
        with suppress(ImportError):
            module = import_module(name)
            getattr(module, attribute)  # fails if the layer renames it
            setattr(module, attribute, value)


if __name__ == "__main__":
    stop_at(sys.argv.pop(1))
    lift_limits()
    logging.getLogger("botocore").setLevel(logging.WARNING)  # as without DEBUG=1
    runpy.run_module("awslambdaric", run_name="__main__")
