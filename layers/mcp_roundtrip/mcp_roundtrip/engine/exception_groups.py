"""The one exception that stands for an exception group: a response has one error.

A TaskGroup raises a group for the failures of its branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_roundtrip.errors import MissingClientCapability, ToolError


def single_exception(error: BaseException) -> BaseException:
    """Return the exception that decides the reply; the group itself if its exceptions have different ones."""
    causes = list(_leaves(error))
    if len(causes) == 1:
        return causes[0]
    lacking = [cause for cause in causes if isinstance(cause, MissingClientCapability)]
    if len(lacking) == len(causes):
        questions = {key: asked for cause in lacking for key, asked in cause.questions.items()}
        required = _merge_capabilities([cause.required for cause in lacking])
        lost = dict.fromkeys(key for cause in lacking for key in cause.lost)
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


def _merge_capabilities(capabilities: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = {name for each in capabilities for name in each}
    return {
        name: _merge_capabilities([each[name] for each in capabilities if name in each])
        for name in sorted(names)
    }
