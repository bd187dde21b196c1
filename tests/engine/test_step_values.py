"""Step results: the journaled value, and the value of a replay."""

import functools
import gc
import math
import time
import weakref
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
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
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    computed_field,
    field_serializer,
    model_validator,
)
from typing_extensions import TypedDict

from mcp_roundtrip import Image
from mcp_roundtrip.engine.step_values import (
    NO_ANNOTATION,
    check_annotation,
    return_annotation,
    revive,
    round_trip,
)
from mcp_roundtrip.engine.typed_step_values import StepType
from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.protocol import strict_json
from support.json_values import any_json, values_of_type

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


@dataclass
class Scan:
    pages: list[bytes]


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
    (Scan, st.builds(Scan, st.lists(st.binary()))),
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


def test_untyped_models_become_plain_data():
    value = {"when": date(2026, 7, 28), "point": Point(1), "id": UUID(int=1)}
    plain = {"when": "2026-07-28", "point": {"x": 1, "y": 0.0}, "id": str(UUID(int=1))}
    assert through(value, NO_ANNOTATION) == plain
    assert through({"\ufffd": "\ufffd"}, NO_ANNOTATION) == {"\ufffd": "\ufffd"}


@pytest.mark.parametrize(
    "value",
    [object(), math.nan, math.inf, [math.nan], {"a": object()}, b"\xff", [{1: "a", "1": "b"}], {"\udc80": 1}],
)
def test_an_untyped_value_without_json_form_is_refused(value):
    with pytest.raises(UsageError):
        dump(value, NO_ANNOTATION)


class Small(BaseModel):
    size: int = Field(lt=3)


@dataclass
class Sized:
    size: Annotated[int, Field(lt=3)]


@pytest.mark.parametrize("value", [Sized(3), Small.model_construct(size=3), Small.model_construct()])
def test_an_instance_that_cannot_be_revived_is_refused_at_once(value):
    for held, annotation in ((value, type(value)), ([value], list[type(value)])):
        with pytest.raises(UsageError):
            dump(held, annotation)


def test_bytes_of_a_model_that_writes_them_as_text_are_named():
    class Stamp(BaseModel):
        image: bytes

    with pytest.raises(
        UsageError, match=r"its return type .*Stamp, at result\.image: bytes that are not UTF-8"
    ):
        dump(Stamp(image=b"\xff"), Stamp)


class Opaque: ...


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, SECRET),
        (list[int], [SECRET]),
        (Point, Point(SECRET)),
        (float, math.nan),
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
        assert (dump(revived.value, annotation), revived.added) == (data, 7)


class Price(BaseModel):
    euros: int
    note: str = ""


class Renamed(BaseModel):
    total: int = 0
    note: str = ""


@dataclass
class RenamedInADataclass:
    total: int = 0


class RenamedBesideADate(Renamed):
    at: date = date(2026, 7, 28)


class Migrated(Renamed):
    @model_validator(mode="before")
    @classmethod
    def read_earlier_name(cls, data: Any) -> Any:
        return {"total": data["euros"]} if "euros" in data else data


@pytest.mark.parametrize(
    "annotation",
    [Renamed, RenamedInADataclass, RenamedBesideADate, list[Renamed], dict[str, Renamed], Renamed | None],
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
        assert (dump(revived.value, annotation), revived.names) == (data, set(names))


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
        (unresolved, NO_ANNOTATION),
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
    assert return_annotation(function) == expected
    assert return_annotation(function) == expected  # from the cache


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


class Noon(Enum):
    TIME = time_of_day(12)
    TEXT = "12:00:00"


class Priced(BaseModel):
    price: Decimal

    @field_serializer("price")
    def written(self, value):
        return f"{value} EUR"


@pytest.mark.parametrize(
    ("value", "annotation", "said"),
    [
        (b"a", str | bytes, "becomes str"),
        (datetime(2026, 1, 2, tzinfo=UTC), str | datetime, "becomes str"),
        ([datetime(2026, 1, 2, tzinfo=UTC)], list[str | datetime], "becomes another value"),
        (Priced(price=Decimal(1)), Priced, "result.price"),
        ("1", Decimal | str, "becomes Decimal"),
        (["/a"], list[PurePosixPath | str], "becomes another value"),
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

    with pytest.raises(UsageError, match=f"cannot be read back.*{said}"):
        dump(value, annotation)
    assert dump(ComparedByIdentity(1), ComparedByIdentity) == {"x": 1}
