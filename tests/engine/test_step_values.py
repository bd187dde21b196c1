"""Step results: the journaled value, and the value of a replay."""

import functools
import gc
import math
import time
import weakref
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, computed_field
from typing_extensions import TypedDict

from mcp_roundtrip import Image
from mcp_roundtrip.engine.step_values import (
    NO_ANNOTATION,
    UNRESOLVED,
    check_annotation,
    return_annotation,
    revive,
    round_trip,
)
from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.protocol import strict_json
from support.json_values import any_json

SECRET = "hunter2-hunter2"

# On a fresh machine Hypothesis first builds its Unicode tables, and pydantic its validators.
law = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def dump(value: Any, annotation: Any) -> Any:
    return round_trip(value, annotation)[0]


def through(value, annotation):
    """Dump, serialize, parse and revive a value, as a replay in another process does."""
    data = dump(value, annotation)
    written = strict_json.parse_json(strict_json.compact_json(data))
    assert written == data
    return revive(written, annotation)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Planet(Enum):
    EARTH = (1, 2)
    MARS = date(2026, 7, 28)
    VENUS = Decimal("1.5")
    MOON = b"moon"


class Aliased(BaseModel):
    value: int = Field(alias="other")


class Unset(BaseModel):
    value: int | None = None


@dataclass
class Point:
    x: int
    y: float = 0.0


@dataclass(frozen=True)
class Path:
    points: tuple[Point, ...] = ()
    names: dict[str, list[Point]] = field(default_factory=dict)


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict, total=False):
    name: str
    when: datetime


class Stored(TypedDict):
    content: bytes


class Database(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: UUID
    price: Decimal
    color: Color
    read_as: int = Field(1, validation_alias="readAs")
    written_as: int = Field(1, serialization_alias="writtenAs")
    both: int = Field(1, alias="bothWays")
    path: Path | None = None

    @computed_field
    @property
    def label(self) -> str:
        return f"db {self.id}"


text = st.text(st.characters(exclude_categories=["Cs"]))
points = st.builds(Point, st.integers(), st.floats(allow_nan=False, allow_infinity=False))
paths = st.builds(
    Path, st.lists(points, max_size=3).map(tuple), st.dictionaries(text, st.lists(points, max_size=2))
)
offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(
    lambda d: timezone(timedelta(minutes=d // timedelta(minutes=1)))
)
moments = st.datetimes(timezones=st.none() | st.just(UTC) | offsets)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
databases = st.builds(
    Database,
    id=st.uuids(),
    price=decimals,
    color=st.sampled_from(Color),
    readAs=st.integers(),
    written_as=st.integers(),
    bothWays=st.integers(),
    path=st.none() | paths,
)
rows = st.fixed_dictionaries({}, optional={"name": text, "when": moments})
json_values = any_json(text, finite=True, max_leaves=10)

CARRIED = [
    (None, json_values),
    (Any, json_values),
    (NO_ANNOTATION, json_values),
    (type(None), st.none()),
    (bool, st.booleans()),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, text),
    (bytes, st.binary()),
    (list[bytes], st.lists(st.binary())),
    (Stored, st.fixed_dictionaries({"content": st.binary()})),
    (Image, st.builds(Image, st.binary(), st.just("image/png"))),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (UUID, st.uuids()),
    (Decimal, decimals),
    (date, st.dates()),
    (datetime, moments),
    (timedelta, st.timedeltas(timedelta(days=-9999), timedelta(days=9999))),
    (Point, points),
    (Path, paths),
    (Database, databases),
    (Row, rows),
    (Pair, st.builds(Pair, st.integers(), text)),
    (tuple[int, str], st.tuples(st.integers(), text)),
    (tuple[Point, ...], st.lists(points).map(tuple)),
    (set[int], st.sets(st.integers())),
    (frozenset[Color], st.frozensets(st.sampled_from(Color))),
    (list[Database | None], st.lists(st.none() | databases, max_size=2)),
    (dict[int, date], st.dictionaries(st.integers(), st.dates())),
    (dict[str, dict[str, Point]], st.dictionaries(text, st.dictionaries(text, points), max_size=3)),
    (int | str | None, st.none() | st.integers() | text),
    (Literal[1] | bool, st.booleans() | st.just(1)),
    (bool | Level, st.booleans() | st.sampled_from(Level)),
    (bool | bytes, st.booleans() | st.binary()),
    (Planet, st.sampled_from(Planet)),
    (dict[str, float | str], st.just({"a": 1})),
    (dict[Planet, list[Planet]], st.dictionaries(st.just(Planet.MARS), st.just([*Planet]))),
    (Literal[b"a", Planet.EARTH], st.sampled_from([b"a", Planet.EARTH])),
    (Aliased | Unset | bool, st.booleans() | st.builds(Aliased, other=st.integers())),
    (Annotated[int, Field(examples=[1])], st.integers()),
    # unions that msgspec does not decode
    (list[int] | list[str], st.lists(st.integers()) | st.lists(text)),
    (list[list[int] | list[str]], st.lists(st.lists(text))),
]


@pytest.mark.parametrize(("annotation", "values"), CARRIED)
@settings(law, max_examples=10)
@given(st.data())
def test_a_replay_gets_the_value_of_the_first_run(annotation, values, data):
    value = data.draw(values)
    revived = through(value, annotation)
    assert revived == value
    if annotation not in (None, Any, NO_ANNOTATION):  # JSON does not distinguish 1.0 from 1
        assert type(revived) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[int, {"unit": "ms"}], 3),
        (list[Annotated[int, {"unit": "ms"}]], [3]),
        (Annotated[Point | None, ["metadata"]], Point(1)),  # Python 3.11 has no unions of such types
    ],
)
def test_a_return_type_may_have_metadata_without_a_hash(annotation, value):
    def step() -> annotation: ...

    found = return_annotation(step)
    check_annotation(found)
    assert revive(dump(value, found), found) == value


def test_values_become_json_data_by_any():
    value = {"when": date(2026, 7, 28), "point": Point(1), "id": UUID(int=1)}
    plain = {"when": "2026-07-28", "point": {"x": 1, "y": 0.0}, "id": str(UUID(int=1))}
    assert through(value, Any) == plain
    assert through({"\ufffd": "\ufffd"}, NO_ANNOTATION) == {"\ufffd": "\ufffd"}


@pytest.mark.parametrize("annotation", [NO_ANNOTATION, UNRESOLVED])
@pytest.mark.parametrize(
    "value", [{"item": {"price": Decimal("10")}}, [Point(1)], {"tags": {"a"}}, {1: "a"}, date(2026, 7, 28)]
)
def test_a_value_that_json_would_change_is_refused_without_an_annotation(annotation, value):
    with pytest.raises(UsageError):
        dump(value, annotation)


@pytest.mark.parametrize(
    "value",
    [object(), math.nan, math.inf, [math.nan], {"a": object()}, b"\xff", [{1: "a", "1": "b"}], {"\udc80": 1}],
)
def test_an_untyped_value_without_json_form_is_refused(value):
    with pytest.raises(UsageError):
        dump(value, NO_ANNOTATION)


class Opaque: ...


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, SECRET),
        (list[int], [SECRET]),
        (Point, Point(SECRET)),
        (float, math.nan),
        (float, 10**400),
        pytest.param(int, 10**5000, id="5001 digits"),
        (list[float], [math.inf]),
        (list[str], ["\ud800"]),
        (Opaque, Opaque()),
    ],
)
def test_an_invalid_value_is_refused_and_never_quoted(annotation, value):
    with pytest.raises(UsageError) as caught:
        dump(value, annotation)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("annotation", "data"),
    [(int, SECRET), (Point, {"x": SECRET}), (Color, SECRET), (list[int], None), (Database, {}), (Opaque, {})],
)
def test_data_that_violates_a_new_type_is_a_value_error_without_values(annotation, data):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the class is the contract, the text is not
        revive(data, annotation)
    assert type(caught.value) is ValueError
    assert SECRET not in str(caught.value)


def typed(x: "list[Point]") -> "list[Point]":
    return x


async def awaited() -> Point:
    return Point(1)


def awaitable() -> Awaitable[Point]:
    return awaited()


def untyped(): ...
def unresolved() -> "Absent": ...  # noqa: F821
def nothing() -> None: ...


class Service:
    def method(self) -> Point: ...

    @classmethod
    def make(cls) -> "Service": ...

    def __call__(self) -> int: ...


@functools.wraps(typed)
def wrapped(*args):
    return typed(*args)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (typed, list[Point]),
        (wrapped, list[Point]),
        (awaited, Point),
        (awaitable, Point),
        (untyped, NO_ANNOTATION),
        (unresolved, UNRESOLVED),
        (nothing, type(None)),
        (lambda: 1, NO_ANNOTATION),
        (time.time, NO_ANNOTATION),
        (int, int),
        (Point, Point),
        (Service.make, Service),
        (Service(), int),
        (functools.partial(typed, []), list[Point]),
        (functools.partial(functools.partial(Service().method)), Point),
        (functools.partial(Point, 1), Point),
        ("text".upper, NO_ANNOTATION),
    ],
)
def test_the_annotation_of_the_awaited_result_is_found(function, expected):
    assert [return_annotation(function) for _ in range(2)] == [expected] * 2, "the second time from the cache"


def test_the_cache_distinguishes_annotations_of_equal_code_and_keeps_no_closure_alive():
    def make(annotation):
        held = Point(1)

        def step() -> annotation:
            return held

        assert return_annotation(step) == annotation
        return weakref.ref(step)

    references = [make(kind) for kind in (int, str)]
    gc.collect()
    assert [reference() for reference in references] == [None, None]
