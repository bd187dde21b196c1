"""Results of tools: outputSchema, content and structuredContent."""

import json
import math
import re
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from ipaddress import IPv6Address
from typing import Annotated, Any, Literal, TypeVar, Union

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, Tool
from pydantic import (
    AfterValidator,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    WrapSerializer,
    computed_field,
)
from typing_extensions import TypeAliasType, TypedDict

from mcp_roundtrip.content.blocks import Audio, EmbeddedResource, Image, ResourceLink, Text
from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.errors import DefinitionError, UsageError
from support.json_values import any_json
from support.servers import output_of
from support.skips import NEWER_PYTHON

PIXEL = Image(b"\x89PNG", "image/png")
SECRET = "hunter2-hunter2"


class Database(BaseModel):
    id: str = Field(max_length=8)
    price: Decimal = Decimal("1.50")
    created: date = Field(date(2026, 7, 28), alias="createdOn")

    @computed_field
    @property
    def label(self) -> str:
        return f"db {self.id}"


@dataclass
class Point:
    x: int


class Level(IntEnum):
    ON = 1


class Row(TypedDict):
    name: str


T = TypeVar("T")
MANY = TypeAliasType("MANY", list[T], type_params=(T,))
SAME = TypeAliasType("SAME", T, type_params=(T,))
UNANNOTATED = Output.from_function(lambda: None)


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


UNSTRUCTURED = [
    Any,
    None,
    str,
    str | None,
    Text,
    Text | Image | None,
    Union[Text, str],  # noqa: UP007 - the older spelling must work too
    list[Image],
    list[Text | str],
    tuple[Text, Image],
    Annotated[str, AfterValidator(str.upper)],
    Annotated[Audio | ResourceLink | EmbeddedResource | str, "a note"],
    list[Annotated[Text, "a note"]],
]


@pytest.mark.parametrize("annotation", UNSTRUCTURED)
def test_content_and_any_have_no_output_schema(annotation):
    assert output_of(annotation).json_schema() is None
    assert UNANNOTATED.json_schema() is None


@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (Annotated[str, PlainSerializer(str.upper, return_type=str)], "a", "A"),
        (Annotated[str, PlainSerializer(len, return_type=int)], "abc", 3),
        (Annotated[str, WrapSerializer(lambda text, write: write(text) + "!")], "a", "a!"),
        (Annotated[str | None, PlainSerializer(bool, return_type=bool)], None, False),
    ],
)
def test_text_with_a_serializer_is_a_value(annotation, value, data):
    output = output_of(annotation)
    assert output.json_schema() is not None
    content = [{"type": "text", "text": json.dumps(data)}]
    assert output.dump(value) == {"content": content, "structuredContent": data}


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


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Database, Database(id="a", createdOn=date(2026, 1, 1))),
        (Database, {"id": "a"}),
        (Point, Point(1)),
        (date, date(2026, 7, 28)),
        (list[Any], [1, {"a": None}]),
    ],
)
def test_a_structured_result_conforms_to_its_output_schema(annotation, value):
    output = output_of(annotation)
    schema = output.json_schema()
    content, structured = output.dump(value).values()
    jsonschema.validate(structured, schema, cls=jsonschema.Draft202012Validator)
    assert [json.loads(block["text"]) for block in content] == [structured]
    CallToolResult.model_validate({"content": content, "structuredContent": structured})
    Tool(name="t", input_schema={"type": "object"}, output_schema=schema)


def test_the_output_schema_describes_the_serialized_form():
    schema = output_of(Database).json_schema()
    assert next(iter(schema)) == "type"
    assert "title" not in schema
    assert set(schema["properties"]) == {"id", "price", "createdOn", "label"}
    assert set(schema["required"]) >= {"id", "label"}
    assert not any("title" in member for member in schema["properties"].values())


def test_choices_are_described_in_their_order():
    """The types are equal in Python."""
    choices = ["a", "b"], ["b", "a"]
    assert [output_of(Literal[tuple(each)]).json_schema()["enum"] for each in choices] == [*choices]


@pytest.mark.parametrize(
    "annotation",
    [
        Database | Text,
        dict[str, Image],
        list[Text | int],
        list[list[Text]],
        list[Text | Annotated[str, PlainSerializer(str.upper)]],
    ],
)
def test_a_return_type_that_mixes_blocks_and_data_is_refused(annotation):
    with pytest.raises(DefinitionError, match=r"tool.*return either"):
        output_of(annotation)


@pytest.mark.parametrize("output", [UNANNOTATED, output_of(str | None), output_of(Any)])
def test_text_is_one_block_and_none_is_no_block(output):
    assert output.dump("hi") == {"content": [{"type": "text", "text": "hi"}]}
    assert output.dump(None) == {"content": []}


@pytest.mark.parametrize("output", [UNANNOTATED, output_of(list[Text | Image | str])])
def test_blocks_are_written_in_order(output):
    assert output.dump(PIXEL) == {"content": [PIXEL.to_wire()]}
    expected = [{"type": "text", "text": "a"}, PIXEL.to_wire(), {"type": "text", "text": "b"}]
    assert output.dump(["a", PIXEL, Text("b")]) == {"content": expected}
    assert output.dump((PIXEL,)) == {"content": [PIXEL.to_wire()]}
    if output is not UNANNOTATED:
        assert output.dump(["a"]) == {"content": [{"type": "text", "text": "a"}]}
        assert output.dump([]) == {"content": []}


@pytest.mark.parametrize("value", [["ä", "b"], [], {"type": "text", "text": "a"}, 0, False, [1, "a"]])
def test_untyped_data_is_structured(value):
    content, structured = UNANNOTATED.dump(value).values()
    assert structured == value
    assert content == [{"type": "text", "text": json.dumps(value, separators=(",", ":"), ensure_ascii=False)}]


@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (None, {"when": date(2026, 7, 28), "point": Point(1)}, {"when": "2026-07-28", "point": {"x": 1}}),
        (Database | None, None, None),
        (Point, type("Special", (Point,), {})(1), {"x": 1}),
        (Row, {"name": "a", "more": 1}, {"name": "a"}),
        (
            Annotated[dict[str, int], PlainSerializer(lambda members: members | {"b": 0})],
            {"a": 1},
            {"a": 1, "b": 0},
        ),
    ],
)
def test_a_value_is_written_as_its_declared_type(annotation, value, data):
    output = output_of(annotation) if annotation else UNANNOTATED
    [block], structured = output.dump(value).values()
    assert structured == data
    assert block["text"] == json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def test_members_are_accepted_by_name_or_alias_and_written_by_alias():
    for member in ("created", "createdOn"):
        _, structured = output_of(Database).dump({"id": "a", member: "2026-01-01"}).values()
        assert structured["createdOn"] == "2026-01-01"


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


@pytest.mark.parametrize("annotation", [str, Text, None, list[Image]])
def test_a_value_other_than_content_is_refused_if_content_is_declared(annotation):
    with pytest.raises(UsageError, match="tool"):
        output_of(annotation).dump({"a": SECRET})


@pytest.mark.parametrize("annotation", [str, Text, str | Image, list[Image]])
def test_none_is_refused_if_the_type_does_not_have_it(annotation):
    with pytest.raises(UsageError, match="tool returned None; return"):
        output_of(annotation).dump(None)


def test_text_with_a_lone_surrogate_or_a_cycle_is_refused():
    for output in (UNANNOTATED, output_of(str)):
        with pytest.raises(UsageError, match=r"half of a surrogate pair"):
            output.dump("x\udc80y")
    with pytest.raises(UsageError, match=r"at result\.a\[0\]"):
        UNANNOTATED.dump({"a": CYCLIC})


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
    ({"ok": 1, "a": [0, (1, Thing())]}, "result.a[1][1]: Thing"),
    ({"a": Pair(1, Pair(Thing()))}, "result.a.right.left: Thing"),
    ({"a": Rows(rows=[{}, {"b": Thing()}])}, "result.a.rows[1].b: Thing"),
    ({"a": {"b": math.inf}}, "result.a.b: NaN or Infinity"),
    ({"a": Rows(rows=[{"b": math.nan}])}, "result.a.rows[0].b: NaN or Infinity"),
    ({"a": {math.inf, 1}}, "result.a: set"),
    ({"a": b"\xff"}, "result.a: bytes that are not UTF-8 (encode them as Base64 text)"),
    ({Thing(): 1}, "result: dict"),
    ({"a": ["b", "x\udc80"]}, "result.a[1]: half of a surrogate pair"),
    ({"a": {"\ud83d": 1}}, "result.a: half of a surrogate pair in a name"),
    ({"a": {"\udc80": {"b": Thing()}}}, "result.a.\ufffd.b: Thing"),
]


@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        *((each, *case) for each in (None, dict[Any, Any], dict) for case in UNSERIALIZABLE),
        (list[Any], [1, None, math.inf], "result[2]: NaN or Infinity"),
        (Rows, Rows(rows=[{"a": math.nan}]), "result.rows[0].a: NaN or Infinity"),
        (Rows, Rows(rows=[{"a": Thing()}]), "result.rows[0].a: Thing"),
        (Pair, Pair(math.nan), "result.left: NaN or Infinity"),
        (list[str], ["a", "x\udc80"], "result[1]: half of a surrogate pair"),
        (Row, {"name": "\udc80"}, "result.name: half of a surrogate pair"),
        (dict[str, str], {"x\udc80y": "a"}, "result: half of a surrogate pair in a name"),
        (Rows, Rows.model_construct(rows=[], note="\udc80"), "result.note: half of a surrogate pair"),
    ],
)
def test_a_value_without_json_form_is_refused_by_place(annotation, value, where):
    with pytest.raises(UsageError) as caught:
        (output_of(annotation) if annotation else UNANNOTATED).dump(value)
    assert f", at {where}; return " in str(caught.value)
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
def test_a_result_round_trips_through_its_text_unless_it_has_nan_or_infinity(value):
    text = json.dumps([value])
    if "NaN" in text or "Infinity" in text:
        with pytest.raises(UsageError, match=r"NaN or Infinity; return "):
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
    with pytest.raises(UsageError, match=r"result\.a: Input should have the format"):
        output.dump({"a": IPv6Address("fe80::1%eth0")})


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[int, Field(ge=1)], 0),
        (Database, Database.model_construct(id="a" * 9)),
        (Point, Point("a")),
        (list[Point], [Point(1), Point([])]),
        (list[Row], [{}]),
        (Literal[1], True),
        (Literal["a", "b"], "c"),
        (list[float], [math.inf]),
    ],
)
def test_a_value_that_the_schema_refuses_is_an_error(annotation, value):
    with pytest.raises(UsageError, match=r"does not fit its return type|NaN or Infinity"):
        output_of(annotation).dump(value)


LOST = {1: "a", "1": "b"}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        *((each, LOST) for each in (dict, Any, dict[Any, str])),
        (list[dict], [LOST]),
        (Boxes, Boxes(LOST)),
        (Any, [Rows(rows=[]), Boxes(LOST)]),
    ],
)
def test_two_keys_with_one_name_in_json_are_an_error(annotation, value):
    with pytest.raises(UsageError, match="one name"):
        output_of(annotation).dump(value)


@pytest.mark.parametrize("annotation", [list, tuple])
def test_a_list_of_anything_may_be_content_blocks_or_data(annotation):
    output = output_of(annotation)
    assert output.json_schema() is None
    assert output.dump([PIXEL]) == {"content": [PIXEL.to_wire()]}
    assert output.dump([1])["structuredContent"] == [1]


def test_an_alias_is_the_type_that_it_names():
    blocks = TypeAliasType("blocks", Text | Image)
    assert output_of(blocks).json_schema() is None
    assert output_of(blocks).dump(PIXEL)["content"] == [PIXEL.to_wire()]
    assert output_of(MANY[SAME[Image]]).dump([PIXEL]) == {"content": [PIXEL.to_wire()]}
    assert output_of(MANY[int]).dump([1])["structuredContent"] == [1]


@pytest.mark.skipif(sys.version_info < (3, 12), reason=f"{NEWER_PYTHON}: the type statement")
def test_an_alias_may_refer_to_itself():
    names = {}
    exec("type Tree = dict[str, Tree] | str", names)
    tree = names["Tree"]
    recursive = output_of(list[tree])
    assert recursive.json_schema()["type"] == "array"
    assert recursive.dump(["a", {"b": "c"}])["structuredContent"] == ["a", {"b": "c"}]
