"""What a group of exceptions stands for: one response has one error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_roundtrip.errors import MissingClientCapability, ToolError


def as_one(error: BaseException) -> BaseException:
    """The one error that a group stands for: what a TaskGroup made of its branches' failures."""
    causes = list(_leaves(error))
    if len(causes) == 1:
        return causes[0]
    missing_ones = [cause for cause in causes if isinstance(cause, MissingClientCapability)]
    if len(missing_ones) == len(causes):
        questions = {key: asked for cause in missing_ones for key, asked in cause.questions.items()}
        required = _merged([cause.required for cause in missing_ones])
        lost = dict.fromkeys(key for cause in missing_ones for key in cause.lost)
        return MissingClientCapability(required, questions, lost=lost)
    if all(isinstance(cause, ToolError) for cause in causes):
        return ToolError("\n".join(dict.fromkeys(map(str, causes))))
    return error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for cause in error.exceptions:
            yield from _leaves(cause)
    else:
        yield error


def _merged(capabilities: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All the capabilities in one object."""
    names = {name for each in capabilities for name in each}
    return {name: _merged([each[name] for each in capabilities if name in each]) for name in sorted(names)}
