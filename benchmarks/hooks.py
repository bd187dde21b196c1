"""Time a warm call of servers with different numbers of hooks: `hooks.py CALLS PIPE`.

Each hook adds no field and does nothing. The times are CPU time, and the servers take turns, so that a change
of the processor's speed affects all of them.
"""

import marshal
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Call, Server

HOOKS = (0, 1, 10)
TURNS = 60


def nothing(name: int, call: Call) -> Iterator[None]:
    """Do nothing around a pass."""
    yield


def calling(hooks: int) -> Callable[[], None]:
    """Return a function that calls a plain tool of a server with so many hooks."""
    server, context, event = Server("bench"), LambdaContext(), payloads.tool_call("add", {"a": 1, "b": 2})

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    for name in range(hooks):
        server.around(partial(nothing, name))

    def call() -> None:
        assert server.lambda_handler(event, context)["statusCode"] == 200

    return call


def us_per_call(calls: int) -> list[float]:
    """Return the least CPU time of a call in microseconds, for each of HOOKS: other load only adds to it."""
    measured = [calling(hooks) for hooks in HOOKS]
    samples: list[list[float]] = [[] for _ in HOOKS]
    for _ in range(TURNS):
        for call, own in zip(measured, samples, strict=True):
            call()
            began = time.process_time()
            for _ in range(calls):
                call()
            own.append((time.process_time() - began) * 1e6 / calls)
    return [min(own) for own in samples]


def main(calls: int, pipe: int) -> None:
    figures = us_per_call(calls)
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"us": dict(zip(HOOKS, figures, strict=True))}, out)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
