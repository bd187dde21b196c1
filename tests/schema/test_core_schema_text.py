"""The text of a core schema: equal in every process, and different for types with different JSON Schemas."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from mcp_roundtrip.schema.core_schemas import core_schema_text
from mcp_roundtrip.schema.json_schema import build_json_schema
from mcp_roundtrip.schema.type_adapters import type_adapter

SOURCE = """
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal
from pydantic import BaseModel, ConfigDict, Field

class Color(Enum):
    RED = "red"

class Box(BaseModel):
    '''A box.'''
    model_config = ConfigDict(title="Crate", json_schema_extra={"deprecated": False})
    color: Color = Color.RED
    price: Decimal = Field(Decimal("1.5"), description="In euros", examples=["2"])
    inner: "list[Box]" = Field(default_factory=list, alias="in")

@dataclass
class Shelf:
    '''A shelf.'''
    box: Box
    kind: Literal["wood", "steel"]
    tags: set[str]

TYPE = dict[str, Shelf] | list[Box] | Annotated[int, Field(ge=1)]
"""


def type_of(source: str, module: str = "app_of_types") -> Any:
    """The TypeAdapter of the type that a module defines."""
    made = sys.modules[module] = ModuleType(module)  # dataclasses look up their module there
    try:
        exec(source, vars(made))
        return type_adapter(made.TYPE)
    finally:
        del sys.modules[module]


def test_it_is_equal_in_modules_of_any_name_and_at_any_address() -> None:
    texts = {core_schema_text(type_of(SOURCE, name).core_schema) for name in ("app_of_types", "a.b.loaded")}
    assert len(texts) == 1
    assert None not in texts


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("A box.", "A crate."), ('"Crate"', '"Case"'), ("False", "True"), ('RED = "red"', 'RED = "r"'),
        ("In euros", "In cents"), ('"1.5"', '"2.5"'), ('["2"]', '["3"]'), ('alias="in"', 'alias="inside"'),
        ("list[Box]", "list[Color]"), ("A shelf.", "A rack."), ('"steel"', '"iron"'),
        ("set[str]", "set[int]"), ("ge=1", "ge=2"), ("dict[str, Shelf] |", "Shelf |"), ("tags:", "labels:"),
    ],
)  # fmt: skip
def test_it_differs_if_the_json_schema_does(part: str, other: str) -> None:
    one, changed = type_of(SOURCE), type_of(SOURCE.replace(part, other))
    assert build_json_schema(one) != build_json_schema(changed)
    assert core_schema_text(one.core_schema) != core_schema_text(changed.core_schema)


def test_a_core_schema_that_contains_itself_has_none() -> None:
    endless: dict[str, Any] = {"type": "any"}
    endless["metadata"] = partial(print, endless)
    assert core_schema_text(endless) is None


def test_objects_in_it_have_no_addresses() -> None:
    schema = {"type": "any", "default": [object(), partial(print, object()), {object}]}
    assert " at 0x" not in (core_schema_text(schema) or " at 0x")
