"""Kills workers wherever they can be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcp_roundtrip_testing.player import Player
from mcp_roundtrip_testing.workers import Crash


def crashes(make_player: Callable[[], Player]) -> Iterator[Player]:
    """Players for the same test, each with another accident.

    The first one has no accident, and the calls of its workers are counted. For each call of the store there
    are two more: the worker that makes it is killed before the store has done it, or after. Then one for
    each dispatch of a worker, which is lost. The log says which accident it was. A test that has
    no tasks, or does something else the next time, raises AssertionError.
    """
    calm = make_player()
    yield calm
    assert calm.workers.calls, "no worker called the store, so there is nothing to kill it at"
    for number in range(calm.workers.calls):
        for is_done in (False, True):
            player = make_player()
            player.workers.crash = Crash(number, is_done)
            yield player
            assert player.workers.crash is None, f"this time, no worker came to call {number} of the store"
    for number in range(calm.table.dispatcher.count):
        player = make_player()
        player.table.dispatcher.loses = number
        yield player
        assert player.table.dispatcher.count > number, (
            f"this time, dispatch {number} of a worker was not made"
        )
