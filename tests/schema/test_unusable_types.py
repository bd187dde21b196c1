"""Types that are refused because JSON cannot hold their values, or checking takes unbounded time."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from datetime import date
from enum import Enum, IntEnum
from functools import partial
from typing import Annotated, Any, Final, Literal

import pytest
from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    ImportString,
    RootModel,
    TypeAdapter,
    create_model,
)

from mcp_roundtrip import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.unusable_types import refuse_unusable
from support.costly_types import Folder, Wide, choices
from support.servers import arguments_of


class Tree(BaseModel):
    a: int
    left: Tree | None = None
    right: Tree | None = None


class Leaf(BaseModel):
    kind: Literal["leaf"]
    value: int


class Name(RootModel[str]): ...


class Branch(BaseModel):
    kind: Literal["branch"]
    children: list[Annotated[Leaf | Branch, Field(discriminator="kind")]]


class Add(BaseModel):
    left: Add | Multiply | int


class Multiply(BaseModel):
    left: Add | Multiply | int


class Backtracking(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    text: str = Field(pattern="^(a+)+$")


@pytest.mark.parametrize(
    ("type_", "remedy"),
    [
        (Backtracking, "Field"),
        (Annotated[str, Field(pattern=re.compile("^(a+)+$"))], "Field"),  # type: ignore[arg-type]  # mistyped
        (Annotated[str, Field(pattern="(?=x)a")], "in the function"),
        (re.Pattern[str], "str"),
        (ImportString, "Literal"),
        (Final[int], "use a type"),
    ],
)
def test_a_type_that_may_backtrack_or_imports_is_refused_by_parameter(type_: Any, remedy: str) -> None:
    with pytest.raises(DefinitionError, match="tool: ") as refused:
        arguments_of(type_).validate({"x": ""})
    assert remedy in str(refused.value)


@pytest.mark.parametrize("type_", [Branch, Tree, Sequence[int], Annotated[str, Field(pattern="^(a+)+$")]])
def test_other_recursive_types_and_patterns_are_accepted(type_: Any) -> None:
    refuse_unusable(TypeAdapter(type_).core_schema)


def test_nested_alternatives_are_not_compared_exponentially_often() -> None:
    value: Any = ""
    for _ in range(29):
        value = {"kind": "folder", "size": 1.0, "children": [value]}
    with pytest.raises(ArgumentsError, match=r"children\[0\]: .* object"):
        arguments_of(Folder).validate({"x": value})


@pytest.mark.parametrize("leaf", [1, ""])
def test_alternatives_that_hold_themselves_are_read_in_bounded_time(leaf: Any) -> None:
    value: Any = leaf
    for _ in range(60):
        value = {"left": value}
    with pytest.raises(ArgumentsError, match=r"send fewer|an integer"):
        arguments_of(Add).validate({"x": value})
    assert arguments_of(Add).validate({"x": {"left": {"left": 1}}})["x"] == Add(left=Add(left=1))


def refuse(size: int) -> int:
    raise ValueError("not today")


class Sum(BaseModel):
    terms: list[Sum | Product] = []
    size: Annotated[int, AfterValidator(refuse)] = 0


class Product(BaseModel):
    terms: list[Sum | Product] = []
    size: Annotated[int, AfterValidator(refuse)] = 0


def test_refusals_by_validators_are_not_collected_for_each_combination_of_alternatives() -> None:
    def refusal(levels: int) -> str:
        value: Any = {"size": 1}
        for _ in range(levels):
            value = {"terms": [value]}
        with pytest.raises(ArgumentsError) as caught:
            arguments_of(Sum | Product).validate({"x": value})
        return str(caught.value)

    assert refusal(1).splitlines()[:2] == [
        "arguments.x.Sum.terms[0].Sum.size: not today",
        "arguments.x.Sum.terms[0].Product.size: not today",
    ]
    assert "send fewer" in refusal(12)


def test_unions_that_double_on_each_level_are_refused() -> None:
    value: Any = 1
    for _ in range(11):
        value = {"child": value}
    with pytest.raises(DefinitionError, match="'x': the schema"):
        arguments_of(choices(11)).validate({"x": value})


def test_missing_members_are_reported_beside_a_long_text() -> None:
    with pytest.raises(ArgumentsError, match=r"field_0: .*\n(?s:.*)and more"):
        arguments_of(Wide).validate({"x": {"zzz": "a" * 500_000}})


class Level(IntEnum):
    LOW = 1


class Days(Enum):
    TEXT = "2026-07-28"
    DATE = date(2026, 7, 28)


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[int, Field(validation_alias=AliasPath("a", 0))],
        type[int],
        Enum,
        Days,
        Literal[Days.TEXT, Days.DATE],
        Annotated[str, Field(ge=1)],
        Annotated[int | Literal["auto"], Field(ge=1)],
        Annotated[Any, Field(ge=1)],
        Annotated[list[str] | int | None, Field(min_length=1)],
        dict[Literal[1, 2], int],
        dict[Level, int],
        dict[Leaf, int],
        dict[Name, int],
        OrderedDict[tuple[int, int], int],
        set[Leaf],
        frozenset[list[int]],
    ],
)
def test_a_type_that_contradicts_its_schema_is_refused_by_name(annotation: Any) -> None:
    model = create_model("Model", inner=(annotation, ...))
    with pytest.raises(DefinitionError, match=r"'x'.*inner(?!.*NoneType).*; write "):
        arguments_of(model).json_schema()


def test_a_set_of_a_type_that_occurs_twice_is_refused() -> None:
    model = create_model("Model", one=(Leaf, ...), more=(set[Leaf], ...))
    with pytest.raises(DefinitionError, match=r"'more': .* Leaf"):
        arguments_of(model).json_schema()


class Code(RootModel[str], frozen=True): ...


@pytest.mark.parametrize(
    "annotation", [set[Code], dict[Code, int], set[tuple[int, str]], set[frozenset[int]], dict[date, int]]
)
def test_items_of_sets_and_keys_may_be_what_has_a_hash_and_a_name(annotation: Any) -> None:
    refuse_unusable(TypeAdapter(annotation).core_schema)


@pytest.mark.parametrize(
    "limits",
    [
        Annotated[int, Field(gt=5, lt=3)],
        Annotated[float, Field(gt=1, le=1)],
        Annotated[str, Field(min_length=2, max_length=1)],
        Annotated[list[int], Field(min_length=2, max_length=1)],
    ],
)
def test_limits_that_no_value_satisfies_are_refused(limits: Any) -> None:
    with pytest.raises(DefinitionError, match="limits"):
        refuse_unusable(TypeAdapter(limits | None).core_schema)


@pytest.mark.parametrize(
    "type_",
    [
        Annotated[int, Field(ge=1, le=1)],
        Annotated[int | float, Field(ge=1)],
        Annotated[str, Field(ge="2026")],
        Annotated[str, AfterValidator(partial(str.strip))],
    ],
)
def test_limits_that_apply_and_leave_a_value_and_validators_are_accepted(type_: Any) -> None:
    refuse_unusable(TypeAdapter(type_).core_schema)
