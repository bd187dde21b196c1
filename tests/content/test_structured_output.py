"""Values of structured results: how they are written, and which are refused with what place."""

import gc
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from ipaddress import IPv6Address
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import AfterValidator, AwareDatetime, Base64Bytes, BaseModel, ConfigDict, EmailStr, Field, Json
from typing_extensions import TypedDict

from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.errors import UsageError
from support.json_values import any_json
from support.servers import output_of

SECRET = "hunter2-hunter2"
UNANNOTATED = Output.from_function(lambda: None)


class Row(TypedDict):
    name: str


class Level(IntEnum):
    ON = 1


def test_a_fraction_is_no_multiple_of_in_results_because_clients_divide_floats():
    tenth, even = Annotated[float, Field(multiple_of=0.1)], Annotated[int, Field(multiple_of=2)]
    assert output_of(tenth).json_schema() == {"type": "number"}
    assert output_of(tenth).dump(0.3)["structuredContent"] == 0.3
    with pytest.raises(UsageError):
        output_of(even).dump(3)


def test_a_default_or_an_example_that_json_does_not_have_is_left_out():
    class Share(BaseModel):
        part: float = Field(math.nan, examples=[math.inf])

    json.dumps(output_of(Share).json_schema(), allow_nan=False)


class Floor(IntEnum):
    GROUND = 0
    FIRST = 1


@pytest.mark.parametrize("keys", [Floor, Literal[0, 1]])
def test_a_dict_may_have_keys_of_an_enumeration_of_numbers(keys):
    class Both(BaseModel):
        rooms: dict[keys, int]
        floor: Floor | None = None

    assert output_of(dict[keys, int]).dump({Floor.FIRST.value: 2})["structuredContent"] == {"1": 2}
    both = Both.model_construct(rooms={keys(1) if keys is Floor else 1: 2})
    assert output_of(Both).dump(both)["structuredContent"] == {
        "rooms": {"1": 2},
        "floor": None,
    }


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    numbers: list[int]


def test_an_invalid_value_is_refused_by_place_and_never_quoted():
    with pytest.raises(UsageError) as caught:
        output_of(Strict).dump({"numbers": [1, SECRET], "other": SECRET})
    first, *places = str(caught.value).splitlines()
    assert "tool" in first
    assert "Strict" in first
    assert [place.partition(": ")[0] for place in places] == ["result.numbers[1]", "result.other"]
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_text_with_a_lone_surrogate_or_a_cycle_is_refused():
    for output in (UNANNOTATED, output_of(str)):
        with pytest.raises(UsageError, match=r"Text\.text"):
            output.dump("x\udc80y")
    gc.collect()  # finalizers of other tests' objects would fail in the depth of the recursion
    for output in (UNANNOTATED, output_of(dict)):
        with pytest.raises(UsageError, match=r"at result\.a\[0\]"):
            output.dump({"a": CYCLIC})


@pytest.mark.parametrize(
    ("annotation", "make", "where"),
    [
        (list[str], lambda: (each for each in "ab"), "result: generator"),
        (set[str], lambda: map(str, "ab"), "result: map"),
        (dict[str, list[int]], lambda: {"a": iter([1])}, "result.a: list_iterator"),
        (Row, lambda: {"name": (each for each in "ab")}, "result.name: generator"),
    ],
)
def test_an_iterator_is_no_list_which_would_be_empty(annotation, make, where):
    with pytest.raises(UsageError, match=re.escape(where)):
        output_of(annotation).dump(make())


class Thing: ...


@dataclass
class Pair:
    left: Any
    right: Any = None


class Rows(BaseModel):
    rows: list[dict[str, Any]]
    note: str | None = None


@dataclass
class Boxes:
    contents: dict


CYCLIC: list[Any] = []
CYCLIC.append(CYCLIC)


UNSERIALIZABLE = [
    ({"a": {"b": Thing()}}, "result.a.b: Thing"),
    ({"ok": 1, "a": [0, (1, Thing())]}, r"result.a\[1\]\[1\]: Thing"),
    ({"a": Pair(1, Pair(Thing()))}, "result.a.right.left: Thing"),
    ({"a": Rows(rows=[{}, {"b": Thing()}])}, r"result.a.rows\[1\].b: Thing"),
    ({"a": {"b": math.inf}}, "result.a.b: NaN .*"),
    ({"a": Rows(rows=[{"b": math.nan}])}, r"result.a.rows\[0\].b: NaN .*"),
    ({"a": {math.inf, 1}}, "result.a: set"),
    ({"a": b"\xff"}, "result.a: bytes .* Base64 .*"),
    ({Thing(): 1}, "result: dict"),
    ({"a": ["b", "x\udc80"]}, r"result.a\[1\]: half .* pair"),
    ({"a": {"\ud83d": 1}}, "result.a: half .* name"),
    ({"a": {"\udc80": {"b": Thing()}}}, "result.a.\ufffd.b: Thing"),
]


@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        *((each, *case) for each in (None, dict[Any, Any], dict) for case in UNSERIALIZABLE),
        (list[Any], [1, None, math.inf], r"result\[2\]: NaN .*"),
        (Rows, Rows(rows=[{"a": math.nan}]), r"result.rows\[0\].a: NaN .*"),
        (Rows, Rows(rows=[{"a": Thing()}]), r"result.rows\[0\].a: Thing"),
        (Pair, Pair(math.nan), "result.left: NaN .*"),
        (list[str], ["a", "x\udc80"], r"result\[1\]: half .* pair"),
        (Row, {"name": "\udc80"}, "result.name: half .* pair"),
        (dict[str, str], {"x\udc80y": "a"}, "result: half .* name"),
        (Rows, Rows.model_construct(rows=[], note="\udc80"), "result.note: half .* pair"),
    ],
)
def test_a_value_without_json_form_is_refused_by_place(annotation, value, where):
    with pytest.raises(UsageError, match=f", at {where}; return ") as caught:
        (output_of(annotation) if annotation else UNANNOTATED).dump(value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("output", [UNANNOTATED, output_of(list[dict])])
def test_a_null_in_a_union_is_serialized_as_null(output):
    value = [{"a": None, "b": {1.5, 2.5}, "c": date(2026, 7, 28), 3: Decimal("NaN"), "d": "null"}]
    written = {"a": None, "c": "2026-07-28", "3": "NaN", "d": "null"}
    _, [structured] = output.dump(value).values()
    assert sorted(structured.pop("b")) == [1.5, 2.5]
    assert structured == written


@pytest.mark.parametrize("output", [UNANNOTATED, output_of(dict[str, str])])
def test_surrogate_pairs_and_replacement_characters_are_valid_text(output):
    value = {"\ufffd": "\ufffd", "\U0001f600": "\U0001f600"}
    [block], structured = output.dump(value).values()
    assert json.loads(block["text"]) == structured == value


@given(any_json(st.text("ab")))
@example(math.nan)  # few examples have one
def test_a_result_round_trips_through_its_text_unless_it_has_nan_or_infinity(value):
    text = json.dumps([value])
    if "NaN" in text or "Infinity" in text:
        with pytest.raises(UsageError, match=r"NaN .*; return "):
            output_of(list[Any]).dump([value])
    else:
        [block], structured = output_of(list[Any]).dump([value]).values()
        assert json.loads(block["text"]) == structured == [value]


ESCAPED = Annotated[str, AfterValidator(lambda text: text.replace("&", "&amp;"))]


@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (dict[str, Base64Bytes], {"a": b"\x00\xff"}, {"a": "AP8="}),
        (Json[list[int]], [1], [1]),
        (dict[str, ESCAPED], {"a": "&amp;"}, {"a": "&amp;"}),
        (Literal[1] | bool, True, True),
        (bool | int, 1, 1),
    ],
)
def test_no_validator_runs_on_a_value_of_the_declared_type(annotation, value, data):
    _, structured = output_of(annotation).dump(value).values()
    assert repr(structured) == repr(data)


@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (bool | int, 1.0, 1),
        (bool | int, "5", 5),
        (bool | Level, 1, 1),
        (Literal[1, True], True, True),
    ],
)
def test_a_number_is_no_boolean_in_a_union(annotation, value, data):
    assert repr(output_of(annotation).dump(value)["structuredContent"]) == repr(data)


@pytest.mark.parametrize(
    ("annotation", "value", "has_format"),
    [
        (datetime, datetime(2026, 1, 2), False),
        (time, time(10), False),
        (timedelta, timedelta(seconds=0.5), False),
        (AwareDatetime, datetime(2026, 1, 2, tzinfo=UTC), True),
        (EmailStr, "a@中国.co", False),
        (date, date(2026, 1, 2), True),
    ],
)
def test_a_result_has_a_format_only_if_every_value_of_its_type_has_it(annotation, value, has_format):
    output = output_of(annotation)
    assert ("format" in output.json_schema()) is has_format
    assert isinstance(output.dump(value)["structuredContent"], str)


def test_a_result_without_the_format_that_is_advertised_is_refused_with_its_place():
    output = output_of(dict[str, IPv6Address])
    assert output.dump({"a": IPv6Address("fe80::1")})
    with pytest.raises(UsageError, match=r"result\.a: .*\"ipv6\""):
        output.dump({"a": IPv6Address("fe80::1%eth0")})


LOST = {1: "a", "1": "b"}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        *((each, LOST) for each in (dict, Any, dict[Any, str])),
        *((list[each], [LOST]) for each in (dict, Any)),
        (Boxes, Boxes(LOST)),
        (Any, [Rows(rows=[]), Boxes(LOST)]),
    ],
)
def test_two_keys_with_one_name_in_json_are_an_error(annotation, value):
    with pytest.raises(UsageError, match="one name"):
        output_of(annotation).dump(value)
