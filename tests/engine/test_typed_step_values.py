"""Step results of the types that JSON does not have: what their types refuse, and what a later type reads."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv6Address
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    EmailStr,
    Field,
    Json,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    computed_field,
    field_serializer,
    model_validator,
)

from mcp_roundtrip.engine.step_values import revive, round_trip
from mcp_roundtrip.engine.typed_step_values import StepType
from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.protocol import strict_json
from support.json_values import values_of_type

# On a fresh machine Hypothesis first builds its Unicode tables, and pydantic its validators.
law = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Level(IntEnum):
    LOW = 1


class Small(BaseModel):
    size: int = Field(lt=3)


@dataclass
class Sized:
    size: Annotated[int, Field(lt=3)]


@pytest.mark.parametrize("value", [Sized(3), Small.model_construct(size=3), Small.model_construct()])
def test_an_instance_that_cannot_be_revived_is_refused_at_once(value):
    for held, annotation in ((value, type(value)), ([value], list[type(value)])):
        with pytest.raises(UsageError):
            round_trip(held, annotation)


class Failing:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise ValueError("not today")


def test_a_return_type_that_pydantic_cannot_use_is_an_error_that_says_so():
    with pytest.raises(UsageError, match="return type"):
        round_trip(Failing(), Failing)


def test_bytes_of_a_model_that_writes_them_as_text_are_named():
    class Stamp(BaseModel):
        image: bytes

    with pytest.raises(UsageError, match=r"return type .*Stamp, at result\.image: bytes"):
        round_trip(Stamp(image=b"\xff"), Stamp)


class Stay(BaseModel):
    at: datetime
    nights: int = 1
    tags: set[str] = set()
    day: Annotated[date, Field(ge=date(2026, 1, 1))] = date(2026, 7, 28)

    @computed_field
    @property
    def label(self) -> str:
        return "stay"


SplitText = Annotated[list[str], BeforeValidator(lambda text: text.split()), PlainSerializer(" ".join)]


@pytest.mark.parametrize(
    ("annotation", "data"),
    [
        (int, "3"),
        (int, True),
        (bool, 1),
        (str | None, 3),
        (Level, "1"),
        (datetime, 1_700_000_000),
        (date, "2026-07-28T00:00:00"),
        (timedelta, "1 day"),
        (Stay, {"at": "2026-07-28T10:00:00", "tags": ["a", "a"]}),
        (Stay, {"at": "2026-07-28T10:00:00", "nights": True, "label": "stay"}),
        (UUID, "{12345678-1234-4678-9234-567812345678}"),
        (datetime, "2026-07-28T10:00:00+00:00"),
        (Annotated[str, PlainValidator(str.strip)], " a"),
    ],
)
def test_a_recorded_result_that_its_type_writes_otherwise_does_not_count(annotation, data):
    with pytest.raises(ValueError):  # noqa: PT011 - the class is the contract, the text is not
        revive(data, annotation)


@pytest.mark.parametrize(
    ("annotation", "data", "expected"),
    [
        (int, 2.0, 2),
        (float, 2, 2.0),
        (Stay, {"at": "2026-07-28T10:00:00"}, Stay(at=datetime(2026, 7, 28, 10))),
        (SplitText, "a b", ["a", "b"]),
        (set[str], ["b", "a"], {"a", "b"}),
        (Json[list[int]], "[1]", [1]),
        (bool | EmailStr, "a@b.co", "a@b.co"),
        (Annotated[str, Field(pattern="(?i)^a$")], "A", "A"),
    ],
)
def test_a_recorded_result_counts_if_its_type_writes_it_so(annotation, data, expected):
    found = revive(data, annotation)
    assert found == expected
    assert type(found) is type(expected)
    assert isinstance(revive([2], list[float])[0], float)


class Moment(BaseModel):
    at: datetime

    @field_serializer("at")
    def written(self, value):  # without a return type, the JSON Schema describes the field's own
        return value.timestamp()


class Code(BaseModel):
    text: str = Field(json_schema_extra={"format": "email"})


WRITTEN = [
    (Moment, {"at": 1785232800.5}),
    (Code, {"text": "no email"}),
    (SplitText, "a b"),
    (Annotated[int, PlainSerializer(str)], "1"),
    (Annotated[str, WithJsonSchema({"type": "integer"})], "a"),
    (dict[Level, int], {"1": 1}),
    (IPv6Address, "fe80::1%eth0"),
    (Annotated[Decimal, AllowInfNan()], "NaN"),
    (timedelta, "P2191Y285D"),
]


@pytest.mark.parametrize(("annotation", "data"), WRITTEN)
def test_a_type_that_gets_a_member_with_a_default_takes_what_was_recorded(annotation, data):
    @dataclass
    class Record:
        value: annotation
        added: int = 7

    class Row(NamedTuple):
        value: annotation
        added: int = 7

    for revived in (revive({"value": data}, Record), revive([data], Row)):
        assert (round_trip(revived.value, annotation)[0], revived.added) == (data, 7)


def test_a_value_whose_comparison_raises_is_compared_by_its_type():
    @dataclass(eq=False)
    class Row:
        x: int

        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous, as of an array")

    assert round_trip(Row(1), Row)[0] == {"x": 1}


class Price(BaseModel):
    euros: int
    note: str = ""


class Renamed(BaseModel):
    total: int = 0
    note: str = ""


@dataclass
class RenamedField:
    total: int = 0


class RenamedBesideADate(Renamed):
    at: date = date(2026, 7, 28)


class Pair(NamedTuple):  # it reads objects, and writes arrays
    euros: int
    note: str


class Migrated(Renamed):
    @model_validator(mode="before")
    @classmethod
    def read_earlier_name(cls, data: Any) -> Any:
        return {"total": data["euros"]} if "euros" in data else data


@pytest.mark.parametrize(
    "annotation",
    [Renamed, RenamedField, RenamedBesideADate, list[Renamed], dict[str, Renamed], Renamed | None, Pair],
)
def test_a_default_is_not_taken_for_a_recorded_member_that_may_have_been_renamed(annotation):
    recorded = {"euros": 7, "note": "paid"}
    name = str(annotation)
    data = [recorded] if "list" in name else {"a": recorded} if "dict" in name else recorded
    with pytest.raises(ValueError):  # noqa: PT011 - the class is the contract, the text is not
        revive(data, annotation)


def test_a_recorded_member_may_be_dropped_or_read_by_the_type_under_its_earlier_name():
    assert revive({"euros": 7, "note": "", "lost": 1}, Price) == Price(euros=7)
    assert revive({"euros": 7, "note": ""}, Migrated) == Migrated(total=7)


@pytest.mark.parametrize(("annotation", "data"), WRITTEN)
def test_a_set_beside_another_value_has_the_order_of_another_process(annotation, data):
    class Record(BaseModel):
        value: annotation
        names: set[str]

    names = list("abcdefgh")
    for recorded in (names, names[::-1]):  # the set of this process has one order at most
        revived = revive({"value": data, "names": recorded}, Record)
        assert (round_trip(revived.value, annotation)[0], revived.names) == (data, set(names))


class Noon(Enum):
    TIME = time_of_day(12)
    TEXT = "12:00:00"


class Priced(BaseModel):
    price: Decimal

    @field_serializer("price")
    def written(self, value):
        return f"{value} EUR"


class Login(BaseModel):
    name: str
    password: str = Field("", exclude=True)


@pytest.mark.parametrize(
    ("value", "annotation", "said"),
    [
        (b"a", str | bytes, "becomes str"),
        (datetime(2026, 1, 2, tzinfo=UTC), str | datetime, "becomes str"),
        ([datetime(2026, 1, 2, tzinfo=UTC)], list[str | datetime], r"result\[0\] becomes str"),
        (
            {"orders": (Login(name="a", password="b"),)},
            dict[str, tuple[Login]],
            r"orders\[0\]\.password becomes",
        ),
        (Priced(price=Decimal(1)), Priced, "result.price"),
        ("1", Decimal | str, "becomes Decimal"),
        (["/a"], list[PurePosixPath | str], r"result\[0\] becomes PurePosixPath"),
        ({"1"}, set[Decimal | str], "it becomes another value"),
        ({None: 1}, dict[str, int], "it becomes a dict with other keys"),
        ([1], Annotated[list[int], BeforeValidator(lambda value: [*value, 1])], "it becomes another value"),
        ("12:00", time_of_day | str, "in another way"),
        ([True], list[Literal[1]], "in another way"),
        ({1: 1}, dict[float, int], "in another way"),
        (Noon.TIME, Noon, "becomes another value"),
    ],
)
def test_a_value_that_cannot_be_read_back_equal_is_an_error(value, annotation, said):
    @dataclass(eq=False)
    class ComparedByIdentity:
        x: int

    with pytest.raises(UsageError, match=f"read back.*{said}"):
        round_trip(value, annotation)
    assert round_trip(ComparedByIdentity(1), ComparedByIdentity)[0] == {"x": 1}


JSON_TYPES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([int, float, str, bool, Any, list, dict, int | None, int | str | None, bool | float]),
    lambda inner: inner.map(lambda each: list[each]) | inner.map(lambda each: dict[str, each]),
    max_leaves=3,
)


def is_finite(value):
    try:
        return strict_json.parse_json(strict_json.compact_json(value)) == value
    except (ValueError, UnicodeError):
        return False


def outcome(run):
    try:
        return repr(run())
    except (UsageError, ValueError) as error:
        return str(error)


@law
@given(st.data())
def test_values_of_types_that_json_has_are_written_and_read_as_pydantic_does(data):
    annotation = data.draw(JSON_TYPES)
    value = data.draw(values_of_type(annotation))
    by_pydantic = StepType(annotation)
    if annotation is not Any:
        assert outcome(lambda: round_trip(value, annotation)) == outcome(
            lambda: by_pydantic.round_trip(value)
        )
        recorded = data.draw(values_of_type(annotation).filter(is_finite))
        assert outcome(lambda: revive(recorded, annotation)) == outcome(lambda: by_pydantic.revive(recorded))
