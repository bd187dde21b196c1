"""Time warm calls of several servers in one process, as the scripts that `measure.run_script` runs.

The times are CPU time, and the servers take turns, so that a change of the processor's speed affects all of
them.
"""

import marshal
import os
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Server

TURNS = 60

Name = TypeVar("Name")


def calling(server: Server) -> Callable[[], None]:
    """Return a function that calls a plain tool, which it adds to the server."""
    context, event = LambdaContext(), payloads.tool_call("add", {"a": 1, "b": 2})

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def call() -> None:
        assert server.lambda_handler(event, context)["statusCode"] == 200

    return call


def us_per_call(measured: Mapping[Name, Callable[[], None]], calls: int) -> dict[Name, float]:
    """Return the least CPU time of a call in microseconds, by name: other load only adds to it."""
    samples: dict[Name, list[float]] = {name: [] for name in measured}
    for _ in range(TURNS):
        for name, call in measured.items():
            call()
            began = time.process_time()
            for _ in range(calls):
                call()
            samples[name].append((time.process_time() - began) * 1e6 / calls)
    return {name: min(own) for name, own in samples.items()}


def write_figures(figures: Mapping[Name, float], pipe: int) -> None:
    """Write the figures to the process that runs the script."""
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"us": dict(figures)}, out)
