"""The validator that makes typed values: unions, whole numbers, and the bounds of long inputs."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import ip_address
from sys import hash_info
from typing import Annotated, Any, Literal, NamedTuple, Union
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, Json, TypeAdapter, WithJsonSchema
from pydantic.functional_validators import PlainValidator
from pydantic.networks import EmailStr, NameEmail, PostgresDsn, validate_email
from pydantic.types import Discriminator, GetPydanticSchema, Tag
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.json_schema_generator import JsonSchemaGenerator
from mcp_roundtrip.schema.pydantic_validator import MAX_COLLISIONS, MAX_NESTED_VALUES, typed_validator
from support.servers import arguments_of


class Level(IntEnum):
    OFF = 0
    ON = 1


class Wide(BaseModel):
    x: int
    y: int = 0


class Narrow(BaseModel):
    x: str


class Switch(BaseModel):
    state: bool | int


class Open(StrEnum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> Open:
        return cls.A


class Moment(BaseModel):
    at: datetime


class Note(BaseModel):
    at: str


class Mail(BaseModel):
    to: Annotated[str, Field(pattern="@")]


class Phone(BaseModel):
    to: Annotated[str, Field(pattern=r"^\+[0-9]+$")]


class Point(NamedTuple):
    x: float


class Planet(Enum):
    EARTH = (1.0, 2)
    MARS = date(2026, 7, 28)
    MOON = "moon"


class Named(BaseModel):
    planet: Literal[Planet.MOON]


class Numbered(BaseModel):
    planet: Literal["sun"]


Tagged = Annotated[
    Annotated[int, Tag("int")] | Annotated[str, Tag("str")], Discriminator(lambda value: type(value).__name__)
]
Tree = TypeAliasType("Tree", "datetime | str | list[Tree] | dict[str, Tree]")


def read(annotation: Any, value: Any) -> Any:
    return arguments_of(annotation).validate({"x": value})["x"]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (bool | int, 1.0, 1),
        (Literal[1] | bool, True, True),
        (Literal[1] | bool, 1, 1),
        (Literal[True] | int, 1, 1),
        (bool | Level, 1, Level.ON),
        (bool | float, 1.0, 1.0),
        (dict[str, bool | int], {"a": 1.0}, {"a": 1}),
        (Switch, {"state": 1.0}, Switch(state=1)),
        (Wide | Narrow, {"x": "5", "y": 1}, Narrow(x="5")),
        (float | int, 2, 2),
        (int | str, 2.0, 2),
        (timedelta | int, 2.0, 2),
        (Any, 2.0, 2),
        (float, 2, 2.0),
        (int, 1e22, 10**22),
        (Decimal, 2.5, Decimal("2.5")),
        (Literal[1, True], True, True),
        (Literal[1, True], 1.0, 1),
        (set[int], [1.0, 2], {1, 2}),
        (Annotated[date, BeforeValidator(str.strip)], "2026-07-28", date(2026, 7, 28)),
        (Level | str, 1.0, Level.ON),
        (datetime | str, "2026-07-28T14:30:00", "2026-07-28T14:30:00"),
        (timedelta | str, "1 day", "1 day"),
        (Decimal | str, "4_0", "4_0"),
        (Moment | Note, {"at": "2026-07-28T14:30:00"}, Note(at="2026-07-28T14:30:00")),
        (list[Mail | Phone], [{"to": "+49"}, {"to": "a@b"}], [Phone(to="+49"), Mail(to="a@b")]),
        (set[int] | list[int], [1, 1], [1, 1]),
        (Open | Literal["b"], "b", "b"),
        (Tagged, "1", "1"),
        (Annotated[int, PlainValidator(int, json_schema_input_type=str)] | list[int], "5", 5),
        (Point | dict[str, float], {"x": 1.0}, {"x": 1.0}),
        (Tree, [{"a": "2026-07-28T14:30:00"}], [{"a": "2026-07-28T14:30:00"}]),
        (list[Planet], [[1, 2.0], "2026-07-28", "moon"], [*Planet]),
        (list[Literal[Planet.EARTH, b"a"]], [[1, 2], "a"], [Planet.EARTH, b"a"]),
        (Planet | int, [1, 2], Planet.EARTH),
        (dict[Planet, int], {"moon": 1, "2026-07-28": 2}, {Planet.MOON: 1, Planet.MARS: 2}),
        (
            Annotated[Named | Numbered, Field(discriminator="planet")],
            {"planet": "moon"},
            Named(planet=Planet.MOON),
        ),
    ],
)
def test_a_value_is_read_as_its_type_or_the_alternative_whose_schema_accepts_it(
    annotation: Any, value: Any, expected: Any
) -> None:
    found = read(annotation, value)
    assert repr(found) == repr(expected)


def test_a_value_that_a_validator_around_a_union_has_made_is_read_by_pydantic() -> None:
    def parse(value: int) -> datetime:
        return datetime.fromtimestamp(value, UTC)

    moment = Annotated[date | datetime, BeforeValidator(parse, json_schema_input_type=int)]
    assert read(moment, 1) == parse(1)
    text = Annotated[date | datetime, WithJsonSchema({"type": "string"})]
    assert read(text, "2026-07-28") == date(2026, 7, 28)


def test_an_alternative_that_pydantic_cannot_describe_reads_every_value_and_is_tried_once() -> None:
    opaque = GetPydanticSchema(lambda *_: core_schema.no_info_plain_validator_function(str))
    types: TypeAdapter[Any] = TypeAdapter(list[Annotated[Any, opaque] | bool])
    with patch(f"{typed_validator.__module__}.JsonSchemaGenerator", wraps=JsonSchemaGenerator) as generator:
        assert typed_validator(types.core_schema).validate_json("[5, 5, 5, 5]") == ["5"] * 4
    assert generator.call_count < 4


def test_a_refusal_by_a_validator_names_the_alternative() -> None:
    def refuse(value: str) -> str:
        raise ValueError("no")

    with pytest.raises(ArgumentsError) as caught:
        read(list[datetime | Annotated[str, AfterValidator(refuse)]], ["2026-07-28T14:30:00"])
    assert str(caught.value) == "arguments.x[0].str: no"


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


# -- long inputs

ALIKE = [number * hash_info.modulus for number in range(1, 1_500)]
"""Integers whose hash is 0."""
UUIDS = [str(UUID(int=number)) for number in ALIKE]


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
    with pytest.raises(ArgumentsError, match=f"{MAX_COLLISIONS} .* same hash"):
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
    assert len(read(type_, value)) == len(value)


@pytest.mark.parametrize("count", [1, 100])
def test_json_in_strings_counts_towards_the_limit_of_values(count: int) -> None:
    most = [json.dumps(["[,"] * (MAX_NESTED_VALUES // count - 1))] * count
    assert len(read(list[Json[list[str]]], most)) == count
    with pytest.raises(ArgumentsError, match="20000 values"):
        read(list[Json[list[str]]], [*most, "[]"])


def test_hosts_of_urls_and_email_addresses_count_towards_the_same_limit() -> None:
    hosts = f"postgres://{'a,' * MAX_NESTED_VALUES}a"
    assert read(PostgresDsn, hosts)
    with pytest.raises(ArgumentsError, match="20000 hosts"):
        read(PostgresDsn, hosts + ",a")
    address = f"a@{'xn--fiqs8s.' * 20}co"
    assert read(list[EmailStr], [address] * 20)
    for email in (EmailStr, NameEmail, Annotated[str, AfterValidator(validate_email)]):
        with pytest.raises(ArgumentsError, match="200000 characters"):
            read(list[email], [address] * 1_000)  # type: ignore[valid-type]  # each is a class


def test_a_validator_that_reads_an_address_does_not_quote_it() -> None:
    address = Annotated[str, AfterValidator(lambda text: str(ip_address(text)))]
    with pytest.raises(ArgumentsError) as refused:
        read(address, "hunter2")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("container", [list, set, frozenset])
def test_the_first_item_that_a_validator_refuses_ends_the_validation(container: Any) -> None:
    refused: list[int] = []

    def collect(value: int) -> int:
        refused.append(value)
        raise ValueError("not this one")

    item = Annotated[int, AfterValidator(collect)]
    with pytest.raises(ArgumentsError) as caught:
        read(container[item], [*range(1_000)])
    assert len(str(caught.value).splitlines()) == 1
    assert len(refused) <= 2


def test_a_pattern_is_matched_by_the_json_schema_only() -> None:
    text = Annotated[str, Field(pattern=r"^\W\s$")]
    assert read(text, "ä\ufeff") == "ä\ufeff"
