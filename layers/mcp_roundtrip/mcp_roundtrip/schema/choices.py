"""Choices that are only known at run time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from mcp_roundtrip.errors import DefinitionError


def one_of(options: Iterable[str], *, description: str | None = None) -> type[str]:
    """The model of a form that offers `options` in their order: `ctx.elicit("p", "Which?", one_of(names))`.

    The answer is one of them. Raises DefinitionError when there are none, or one twice: the form could not
    say which is meant.
    """
    values = tuple(options)
    if not values or len(set(values)) < len(values):
        problem = f"has {values[0]!r:.100} or another option twice" if values else "has no options"
        raise DefinitionError(f"one_of {problem}; pass at least one option, and each of them once")
    model: Any = Annotated[Literal[values], Field(description=description)]
    return model  # type: ignore[no-any-return]  # to type checkers the answer is a str, which is all they can know
