"""Validation whose memory does not grow with the number of errors, and types that cannot be bounded."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ImportString, TypeAdapter, ValidationError

from mcp_roundtrip import DefinitionError
from mcp_roundtrip.canonical import MAX_DEPTH
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.arguments import Arguments
from mcp_roundtrip.schema.bounded_validation import SHORT_INPUT, bound_validator, text_copies
from support.costly_types import Folder, Wide


class Item(BaseModel):
    name: str
    count: int
    default: dict[str, int] = {"type": 1}


class Tree(BaseModel):
    a: int
    left: Tree | None = None
    right: Tree | None = None


class Leaf(BaseModel):
    kind: Literal["leaf"]
    value: int


class Branch(BaseModel):
    kind: Literal["branch"]
    children: list[Annotated[Leaf | Branch, Field(discriminator="kind")]]


TYPES: list[Any] = [
    list[int],
    dict[str, Item],
    list[Item | list[int]],
    tuple[int, ...],
    set[str],
    Tree,
    Branch,
    dict[str, list[Tree]],
]
PADDING = " " * SHORT_INPUT


def errors(types: TypeAdapter[Any], text: str) -> list[Any]:
    with pytest.raises(ValidationError) as refused:
        types.validate_json(text)
    return refused.value.errors(include_input=False)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (list[int], [""] * 5_000),
        (list[Item], [{}] * 5_000),
        (dict[str, Item], {str(n): {} for n in range(2_000)}),
        (tuple[int, ...], [""] * 5_000),
        (set[int], [[]] * 10_000),
        (list[Tree], [{"a": 1, "left": {}}] * 2_000),
    ],
)
def test_a_long_input_reports_only_the_errors_of_its_first_invalid_item(type_: Any, value: Any) -> None:
    assert len(errors(bound_validator(TypeAdapter(type_)), json.dumps(value))) <= 2


def test_a_long_recursive_input_reports_one_error() -> None:
    def tree(levels: int) -> Any:
        return {"left": tree(levels - 1), "right": tree(levels - 1)} if levels else {}

    [found] = errors(bound_validator(TypeAdapter(Tree)), json.dumps(tree(11)))
    assert "valid Tree" in found["msg"]


def test_a_short_input_reports_all_errors() -> None:
    assert len(errors(bound_validator(TypeAdapter(list[Item])), "[{},{},{}]")) == 6


@given(st.sampled_from(TYPES), st.data())
def test_a_long_input_is_accepted_as_pydantic_accepts_it(type_: Any, data: st.DataObject) -> None:
    plain, types = TypeAdapter(type_), bound_validator(TypeAdapter(type_))
    leaves = st.none() | st.integers() | st.sampled_from(["leaf", "branch", "x"])
    names = st.sampled_from(["a", "left", "right", "kind", "value", "children", "name", "count", "default"])
    value = data.draw(
        st.recursive(leaves, lambda each: st.lists(each) | st.dictionaries(names, each), max_leaves=20)
    )
    text = json.dumps(value) + PADDING
    try:
        expected = plain.validate_json(text)
    except ValidationError:
        with pytest.raises(ValidationError):
            types.validate_json(text)
    else:
        assert types.validate_json(text) == expected


class Add(BaseModel):
    left: Add | Multiply | int


class Multiply(BaseModel):
    left: Add | Multiply | int


class Lists(BaseModel):
    items: list[Lists] | tuple[Lists, ...]


class Backtracking(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    text: str = Field(pattern="^(a+)+$")


@pytest.mark.parametrize(
    ("type_", "remedy"),
    [
        (Add, "discriminator"),
        (list[Add | int], "discriminator"),
        (Lists, "discriminator"),
        (Backtracking, "Field"),
        (list[Backtracking], "Field"),
        (Annotated[str, Field(pattern=re.compile("^(a+)+$"))], "Field"),  # type: ignore[arg-type]  # mistyped
        (Annotated[str, Field(pattern="(?=x)a")], "in the function"),
        (Annotated[str, Field(pattern=r"(a)\1")], "in the function"),
        (re.Pattern, "str"),
        (re.Pattern[str], "str"),
        (ImportString, "Literal"),
    ],
)
def test_a_type_that_validates_in_exponential_time_or_imports_is_refused_by_parameter(
    type_: Any, remedy: str
) -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = type_
    with pytest.raises(DefinitionError, match="parameter 'value'") as refused:
        Arguments.from_function(tool, ()).validate({"value": ""})
    assert remedy in str(refused.value)


@pytest.mark.parametrize("type_", [Branch, Tree, Item, Annotated[str, Field(pattern="^(a+)+$")]])
def test_other_recursive_types_and_patterns_are_accepted(type_: Any) -> None:
    assert bound_validator(TypeAdapter(type_)).validator is not None


def test_a_backtracking_pattern_takes_linear_time() -> None:
    def tool(value: Annotated[str, Field(pattern="^(a+)+$")]) -> None: ...

    with pytest.raises(ArgumentsError, match="pattern"):
        Arguments.from_function(tool, ()).validate({"value": "a" * 100_000 + "!"})


def test_nested_alternatives_are_not_compared_exponentially_often() -> None:
    def tool(root: Folder) -> None: ...

    value: Any = ""
    for _ in range(29):
        value = {"kind": "folder", "size": 1.0, "children": [value]}
    with pytest.raises(ArgumentsError, match=r"children\[0\]: Input should be an object"):
        Arguments.from_function(tool, ()).validate({"root": value})


def test_missing_members_are_reported_beside_a_long_text() -> None:
    def tool(value: Wide) -> None: ...

    arguments = {"value": {"zzz": "a" * 500_000}}
    with pytest.raises(ArgumentsError, match=r"field_0: Field required\n(?s:.*)and more"):
        Arguments.from_function(tool, ()).validate(arguments)
    assert text_copies(TypeAdapter(Wide).core_schema) == 40
    assert text_copies(TypeAdapter(Tree).core_schema) == 3 * MAX_DEPTH
