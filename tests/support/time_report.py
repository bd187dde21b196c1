"""A pytest plugin that reports where the time of a parallel run goes: the slowest files and fixtures.

The CPU time of a test is that of its process, and of the child processes that ended meanwhile. The rest is
waiting: for other processes, and for a core while more processes want to run than there are cores.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

SHOWN: Final = 10

Times = dict[str, tuple[float, float]]
"""Seconds by name: all of them, and those of CPU time."""

_files: Times = defaultdict(lambda: (0.0, 0.0))
_fixtures: Times = defaultdict(lambda: (0.0, 0.0))


def _add(times: Times, name: str, wall_s: float, cpu_s: float) -> None:
    wall, cpu = times[name]
    times[name] = (wall + wall_s, cpu + cpu_s)


@contextmanager
def _timed(times: Times, name: str) -> Iterator[None]:
    """Add the time of the block."""
    wall, cpu = time.perf_counter(), sum(os.times()[:4])
    try:
        yield
    finally:
        _add(times, name, time.perf_counter() - wall, sum(os.times()[:4]) - cpu)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with _timed(_files, item.nodeid.partition("::")[0]):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    with _timed(_fixtures, f"{fixturedef.baseid or 'tests'}: {fixturedef.argname}"):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the times of a process of pytest-xdist to the one that reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["times"] = (dict(_files), dict(_fixtures))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for times, sent in zip((_files, _fixtures), node.workeroutput.get("times", ({}, {})), strict=True):
        for name, (wall_s, cpu_s) in sent.items():
            _add(times, name, wall_s, cpu_s)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not terminalreporter.config.getoption("numprocesses", None):
        return
    for title, times in (("files", _files), ("fixtures", _fixtures)):
        wall_s, cpu_s = (sum(each) for each in zip(*times.values(), strict=True)) if times else (0, 0)
        terminalreporter.section(f"slowest {title}: {wall_s:.0f} s in all, of which {cpu_s:.0f} s CPU time")
        for name, (wall_s, cpu_s) in sorted(times.items(), key=lambda each: -each[1][0])[:SHOWN]:
            waiting_s = max(0.0, wall_s - cpu_s)
            terminalreporter.line(
                f"{wall_s:6.1f} s = {cpu_s:5.1f} s CPU + {waiting_s:5.1f} s waiting  {name}"
            )
