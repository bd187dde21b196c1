"""Results of tools: which types have an outputSchema, and which values are content."""

import json
import math
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, Union

import jsonschema
import pytest
from mcp_types import CallToolResult, TextContent, Tool
from pydantic import AfterValidator, BaseModel, Field, PlainSerializer, WrapSerializer, computed_field
from typing_extensions import TypeAliasType, TypedDict

from mcp_roundtrip.content.blocks import Audio, EmbeddedResource, Image, ResourceLink, Text
from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.errors import DefinitionError, UsageError
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


class Row(TypedDict):
    name: str


T = TypeVar("T")
MANY = TypeAliasType("MANY", list[T], type_params=(T,))
SAME = TypeAliasType("SAME", T, type_params=(T,))
UNANNOTATED = Output.from_function(lambda: None)


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
    tuple[Text, ...],
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
        list[Text | None],
        list[Text | Annotated[str, PlainSerializer(str.upper)]],
    ],
)
def test_a_return_type_that_mixes_blocks_and_data_is_refused(annotation):
    with pytest.raises(DefinitionError, match=r"tool.*return either"):
        output_of(annotation)


def test_a_return_type_with_an_enumeration_without_members_is_refused():
    with pytest.raises(DefinitionError, match="no values"):
        output_of(dict[str, Enum]).json_schema()


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


@pytest.mark.parametrize("annotation", [str, Text, None, list[Image]])
def test_a_value_other_than_content_is_refused_if_content_is_declared(annotation):
    with pytest.raises(UsageError, match="tool"):
        output_of(annotation).dump({"a": SECRET})


@pytest.mark.parametrize("annotation", [str, Text, str | Image, list[Image]])
def test_none_is_refused_if_the_type_does_not_have_it(annotation):
    with pytest.raises(UsageError, match="returned None; return"):
        output_of(annotation).dump(None)


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
    with pytest.raises(UsageError, match=r"return type|NaN"):
        output_of(annotation).dump(value)


@pytest.mark.parametrize("annotation", [list, tuple])
def test_a_list_of_anything_may_be_content_blocks_or_data(annotation):
    output = output_of(annotation)
    assert output.json_schema() is None
    assert output.dump([PIXEL]) == {"content": [PIXEL.to_wire()]}
    assert output.dump([1])["structuredContent"] == [1]
    for other in ([PIXEL, 1], TextContent(type="text", text="a")):
        with pytest.raises(UsageError, match="content"):
            output.dump(other)


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
