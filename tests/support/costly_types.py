"""Types whose validation is costly unless it is bounded."""

from __future__ import annotations

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
