"""What is wrong with an event that is of no source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcp_roundtrip.adapters.event import Event, Source


def explain(event: Any, sources: Sequence[Source]) -> str:
    """What was expected, and how the event differs from what it is nearest to. Quotes nothing of it."""
    expected = f"the event is neither {', nor '.join(source.name for source in sources)}"
    if not isinstance(event, dict):
        return f"{expected}: it is no object"
    nearest = max(sources, key=lambda source: _likeness(event, source))
    if _likeness(event, nearest)[0] <= 0:
        return expected
    return f"{expected}; it is nearest to {nearest.name}, which has {_differences(event, nearest)}"


def _likeness(event: Event, source: Source) -> tuple[int, int]:
    """How many marks fit, then how few do not."""
    missing, unexpected = len([*source.missing(event)]), len([*source.unexpected(event)])
    return len(source.has) - missing, -missing - unexpected


def _differences(event: Event, source: Source) -> str:
    return ", ".join([*_wanted(event, source), *(f"no {path}" for path in source.unexpected(event))])


def _wanted(event: Event, source: Source) -> Iterable[str]:
    for path in source.missing(event):
        mark = source.has[path]
        yield f'{path} "{mark}"' if isinstance(mark, str) else path
