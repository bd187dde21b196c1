"""Types whose validation is costly unless it is bounded."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

Wide: Any = create_model("Wide", **{f"field_{number}": (int, ...) for number in range(40)})
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
