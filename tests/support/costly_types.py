"""Types whose validation is costly unless it is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model


def integers(model: str, names: Iterable[str]) -> Any:
    """Return a model of required integers: each is an error for each empty object."""
    fields: dict[str, Any] = dict.fromkeys(names, (int, ...))
    return create_model(model, **fields)


Wide = integers("Wide", (f"field_{number}" for number in range(40)))


class Folder(BaseModel):
    kind: Literal["folder"]
    size: int
    children: list[Node]


class Archive(BaseModel):
    kind: Literal["archive"]
    size: int
    children: list[Node]


Node = Annotated[Folder | Archive, Field(discriminator="kind")]


Record = integers("Record", (f"field_{number}" for number in range(400)))
"""So many required members that a short list of empty objects has half a million errors."""


def choices(levels: int) -> Any:
    """Return a union that doubles on each level: each pair of models refers twice to the pair below."""
    below: Any = int
    for _ in range(levels):
        below = create_model("Left", child=(below, ...)) | create_model(
            "Right", child=(below, ...), right=(int, 0)
        )
    return below


def alike(count: int) -> Any:
    """Return a union of models of which no two have a field in common."""
    return reduce(or_, (integers(f"Alike{number}", [f"a{number}"]) for number in range(count)))
