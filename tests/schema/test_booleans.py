"""In a union, a boolean equals no number."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.arguments import Arguments


class Level(IntEnum):
    OFF = 0
    ON = 1


class Switch(BaseModel):
    state: bool | int


def read(annotation: Any, value: Any) -> Any:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    return Arguments.from_function(tool, ()).validate({"value": value})["value"]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (bool | int, 1.0, 1),
        (bool | int, True, True),
        (Literal[1] | bool, True, True),
        (Literal[1] | bool, 1, 1),
        (Literal[True] | int, 1, 1),
        (bool | Level, 1, Level.ON),
        (bool | Level, False, False),
        (bool | float, 1.0, 1.0),
        (list[bool | int], [1.0, True, 0], [1, True, 0]),
        (dict[str, bool | int], {"a": 1.0}, {"a": 1}),
        (Switch, {"state": 1.0}, Switch(state=1)),
        (Switch | str, {"state": 0.0}, Switch(state=0)),
    ],
)
def test_a_value_is_read_by_the_alternative_whose_schema_accepts_it(
    annotation: Any, value: Any, expected: Any
) -> None:
    found = read(annotation, value)
    assert repr(found) == repr(expected)


ALTERNATIVES = [bool, int, float, str, None, Literal[0], Literal[1, 2], Literal[True], Literal["a"], Level]


@given(
    st.lists(st.sampled_from(ALTERNATIVES), min_size=2, max_size=4, unique_by=str),
    st.sampled_from([True, False, 0, 1, 2, 1.0, 0.0, 0.5, "a", "1", None]),
)
def test_what_is_read_equals_the_value_and_is_a_boolean_if_the_value_is_one(kinds: Any, value: Any) -> None:
    try:
        found = read(Union[tuple(kinds)], value)  # noqa: UP007 - the members are known only at run time
    except ArgumentsError:
        return
    assert found == value
    assert isinstance(found, bool) is isinstance(value, bool)
