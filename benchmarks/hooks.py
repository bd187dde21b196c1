"""Time a warm call of servers with different numbers of hooks: `hooks.py CALLS PIPE`.

Each hook adds no field and does nothing.
"""

import sys
from collections.abc import Iterator
from functools import partial

from interleaved import calling, us_per_call, write_figures
from mcp_roundtrip import Call, Server

HOOKS = (0, 1, 10)


def nothing(name: int, call: Call) -> Iterator[None]:
    """Do nothing around a pass."""
    yield


def server_with(hooks: int) -> Server:
    """Return a server with so many hooks."""
    server = Server("bench")
    for name in range(hooks):
        server.around(partial(nothing, name))
    return server


def main(calls: int, pipe: int) -> None:
    write_figures(us_per_call({hooks: calling(server_with(hooks)) for hooks in HOOKS}, calls), pipe)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
