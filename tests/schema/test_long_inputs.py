"""Long inputs: numbers with equal hashes, and JSON within strings."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from sys import hash_info
from typing import Any
from uuid import UUID

import pytest
from pydantic import Json

from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.arguments import Arguments
from mcp_roundtrip.schema.long_inputs import MAX_COLLISIONS, MAX_NESTED_JSON_VALUES

ALIKE = [number * hash_info.modulus for number in range(1, 1_500)]
"""Integers whose hash is 0."""
UUIDS = [str(UUID(int=number)) for number in ALIKE]


def read(annotation: Any, value: Any) -> Any:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    return Arguments.from_function(tool, ()).validate({"value": value})["value"]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (set[int], ALIKE),
        (frozenset[Decimal], [*map(str, ALIKE)]),
        (set[UUID], UUIDS),
        (set[tuple[int, str]], [[number, "a"] for number in ALIKE]),
        (list[set[Any]], [ALIKE]),
        (dict[int, int], {str(number): 1 for number in ALIKE}),
        (dict[UUID, int], dict.fromkeys(UUIDS, 1)),
        (Counter[int], {str(number): 1 for number in ALIKE}),
    ],
)
def test_many_values_with_equal_hashes_are_refused(type_: Any, value: Any) -> None:
    with pytest.raises(
        ArgumentsError, match=rf"{MAX_COLLISIONS} different values have the same hash; send fewer"
    ):
        read(type_, value)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (set[int], [*range(2**70, 2**70 + 1_500)]),
        (set[UUID], [str(UUID(int=2**100 + number)) for number in range(1_500)]),
        (list[set[int]], [[2**70]] * 1_500),
        (list[dict[int, str]], [{str(2**70): ""}] * 1_500),
        (set[int] | list[int], ALIKE),
        (list[int], ALIKE),
    ],
)
def test_many_other_large_numbers_are_accepted(type_: Any, value: Any) -> None:
    assert len(read(type_, value)) == 1_500 - (value is ALIKE)


@pytest.mark.parametrize("count", [1, 100])
def test_json_in_strings_counts_towards_the_limit_of_values(count: int) -> None:
    most = [json.dumps(["[,"] * (MAX_NESTED_JSON_VALUES // count - 1))] * count
    assert len(read(list[Json[list[str]]], most)) == count
    with pytest.raises(ArgumentsError, match="20000 values in strings of JSON; send fewer"):
        read(list[Json[list[str]]], [*most, "[]"])
