"""Types whose validation is costly unless it is bounded."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

_FIELDS: dict[str, Any] = {f"field_{number}": (int, ...) for number in range(40)}
Wide: Any = create_model("Wide", **_FIELDS)
"""Forty required members: forty errors for each empty object."""


class Folder(BaseModel):
    kind: Literal["folder"]
    size: int
    children: list[Node]


class Archive(BaseModel):
    kind: Literal["archive"]
    size: int
    children: list[Node]


Node = Annotated[Folder | Archive, Field(discriminator="kind")]


_MANY: dict[str, Any] = {f"field_{number}": (int, ...) for number in range(400)}
Record: Any = create_model("Record", **_MANY)
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
    fields: list[dict[str, Any]] = [{f"a{number}": (int, ...)} for number in range(count)]
    return reduce(or_, (create_model(f"Alike{number}", **each) for number, each in enumerate(fields)))
