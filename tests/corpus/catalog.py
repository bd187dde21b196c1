"""All cases, in the order of the file."""

from functools import cache

from corpus.cases import (
    asking,
    audited,
    channels,
    deployments,
    direct,
    earlier,
    edges,
    front_door,
    functions,
    parked,
    requests,
    rows,
    states,
    tasks,
    time_over,
    workers,
)
from corpus.recording import Case

GROUPS = (
    *(edges, requests, deployments, direct, asking, channels, states, time_over, parked, rows),
    *(tasks, workers, front_door, audited, functions, earlier),
)


@cache
def all_cases() -> tuple[Case, ...]:
    """Return the cases. Their names differ."""
    found = tuple(case for group in GROUPS for case in group.cases())
    names = [case.name for case in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return found
