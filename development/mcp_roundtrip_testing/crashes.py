"""Repeat a test with a worker lost at each call of the store, and with each response lost."""

from collections.abc import Callable, Iterator

from mcp_roundtrip_testing.player import Player
from mcp_roundtrip_testing.workers import Crash


def crashes(make_player: Callable[[], Player]) -> Iterator[Player]:
    """Yield players for repetitions of a test, each with a different crash.

    The first repetition has no crash and counts the calls of the store. For each call, three repetitions
    follow: the worker is killed before the store performs the call, or after it; or its process stops before
    the call until another worker has taken the task, and continues. Lambda's retry and a poll replace killed
    workers in turn. Then each dispatch is lost in one repetition, and so is each response to a round with a
    state and to answers of a task: the client sends that request again. (A first request has no state, so a
    server cannot recognize its repetition.) A call in rounds has only these. The log names the crash. Raises
    AssertionError if nothing can be lost, or the test is not deterministic.
    """
    first = make_player()
    yield first
    can_lose = first.workers.calls or first.repeatable
    assert can_lose, "no worker called the store, and no request had a state: nothing can be lost"
    for number in range(first.workers.calls):
        is_retried = number % 2 == 0
        for crash in (
            Crash(number, is_done=False, is_retried=is_retried),
            Crash(number, is_done=True, is_retried=not is_retried),
            Crash(number, is_done=False, is_suspended=True),
        ):
            player = make_player()
            player.workers.crash = crash
            yield player
            assert player.workers.crash is None, (
                f"in this repetition, no worker made call {number} of the store"
            )
    for number in range(first.table.dispatcher.count):
        player = make_player()
        player.table.dispatcher.lost_dispatch = number
        yield player
        assert player.table.dispatcher.count > number, f"in this repetition, dispatch {number} was not made"
    for number in range(first.repeatable):
        player = make_player()
        player.lost_response = number
        yield player
        assert player.repeatable > number, f"in this repetition, request {number} with a state was not sent"
