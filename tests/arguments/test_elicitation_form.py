"""Form elicitation: the restricted schema, and reading answers."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal, Optional
from uuid import UUID

import jsonschema
import pytest
from mcp_types import _v2026_07_28
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    Field,
    SecretStr,
    TypeAdapter,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidAnswer
from support.interpreters import run_program
from support.texts import words

SECRET = "hunter2-hunter2"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


Titled = Annotated[Literal["#f00"], Field(title="Red")] | Annotated[Literal["#00f"], Field(title="Blue")]


class AllFields(BaseModel):
    """Every kind of field that a form supports."""

    name: str = Field(min_length=3, max_length=50, pattern="^[a-z]+$", title="Your name")
    email: Annotated[str, Field(json_schema_extra={"format": "email"})]
    site: AnyUrl
    day: date
    moment: datetime
    vcpus: int = Field(4, ge=1, le=16, description="Virtual CPUs", examples=[2])
    above: int = Field(gt=0, lt=10, multiple_of=3)
    share: float = Field(0.5, gt=0, le=1)
    price: Decimal = Field(Decimal("9.99"), ge=0, max_digits=6)
    sure: bool = False
    color: Color = Color.RED
    mode: Literal["a", "b"]
    only: Literal["one"] = "one"
    titled: Titled = "#f00"
    colors: list[Color] = Field([Color.BLUE], min_length=1, max_length=2)
    modes: set[Literal["a", "b", "c"]] = {"c", "a"}
    shades: list[Titled]
    nickname: str | None = None
    shade: Optional[Color] = None  # noqa: UP045 - the older spelling must work too
    identity: UUID
    wait: timedelta


def official():
    """Return the schema of the specification for the fields of a form, without unknown members."""
    field = TypeAdapter(_v2026_07_28.PrimitiveSchemaDefinition).json_schema()
    for definition in field["$defs"].values():
        definition["additionalProperties"] = False
    return jsonschema.Draft202012Validator(field)


def requested(model):
    schema = Form.from_model(model).requested_schema
    assert schema.keys() <= {"type", "properties", "required"}
    for field in schema["properties"].values():
        official().validate(field)
    return schema


def refused(model, content):
    with pytest.raises(InvalidAnswer) as caught:
        Form.from_model(model).parse(content)
    assert caught.value.__suppress_context__ or not isinstance(content, dict)
    return caught.value.reason.splitlines()


# The schema


def test_every_kind_of_field_has_its_restricted_form():
    assert requested(AllFields)["properties"] == {
        "name": {"type": "string", "title": "Your name", "minLength": 3, "maxLength": 50},
        "email": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri", "minLength": 1},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
        "vcpus": {
            "type": "integer",
            "description": "Virtual CPUs",
            "minimum": 1,
            "maximum": 16,
            "default": 4,
        },
        "above": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        "price": {"type": "number", "minimum": 0, "default": 9.99},
        "sure": {"type": "boolean", "default": False},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "only": {"type": "string", "enum": ["one"], "default": "one"},
        "titled": {
            "type": "string",
            "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}],
            "default": "#f00",
        },
        "colors": {
            "type": "array",
            "items": {"type": "string", "enum": ["red", "blue"]},
            "minItems": 1,
            "maxItems": 2,
            "default": ["blue"],
        },
        "modes": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b", "c"]},
            "default": ["a", "c"],
        },
        "shades": {
            "type": "array",
            "items": {"anyOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}]},
        },
        "nickname": {"type": "string"},
        "shade": {"type": "string", "enum": ["red", "blue"]},
        "identity": {"type": "string"},
        "wait": {"type": "string"},
    }


def test_fields_with_a_default_are_not_required():
    assert requested(AllFields)["required"] == [name for name in ANSWER if name != "price"]


@dataclass
class Point:
    x: int
    y: float = 0.0


class Row(TypedDict):
    name: str


def test_dataclasses_and_typed_dicts_are_forms_too():
    assert requested(Point)["required"] == ["x"]
    assert Form.from_model(Point).parse({"x": 1}) == Point(1)
    assert requested(Row)["properties"] == {"name": {"type": "string"}}
    assert Form.from_model(Row).parse({"name": "a"}) == {"name": "a"}


def test_the_schema_is_equal_in_every_process():
    program = """
from typing import Literal
from pydantic import BaseModel
from mcp_roundtrip.arguments.elicitation_form import Form
class M(BaseModel):
    s: set[Literal["a", "b", "c", "d", "e"]] = {"e", "d", "c", "a"}
print(Form.from_model(M).requested_schema)
"""
    runs = {run_program(program, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}
    assert len(runs) == 1


# Unsupported fields


def model(annotation):
    return type("Model", (BaseModel,), {"__annotations__": {"wrong": annotation}})


@pytest.mark.parametrize(
    "annotation",
    [
        Point,
        list[list[Color]],
        tuple[Color, Color],
        dict[str, int],
        Color | int,
        Level,
        None,
        bytes | int,
    ],
)
def test_an_unsupported_field_is_refused_by_name(annotation):
    with pytest.raises(DefinitionError, match="'wrong'"):
        Form.from_model(model(annotation))
    with pytest.raises(DefinitionError, match="'value'"):
        Form.from_model(annotation if annotation is not Point else list[Point])


def test_a_secret_field_is_refused():
    with pytest.raises(DefinitionError, match="elicit_url"):
        Form.from_model(model(SecretStr))


# Answers

ANSWER = {
    "name": "abc",
    "email": "a@example.com",
    "site": "https://example.com",
    "day": "2026-07-28",
    "moment": "2026-07-28T10:00:00Z",
    "above": 3,
    "price": 1.25,
    "mode": "a",
    "shades": ["#00f", "#f00"],
    "identity": "00000000-0000-0000-0000-000000000001",
    "wait": "PT5M",
}


def test_an_answer_becomes_the_model():
    parsed = Form.from_model(AllFields).parse(ANSWER)
    assert isinstance(parsed, AllFields)
    assert parsed.day == date(2026, 7, 28)
    assert parsed.price == Decimal("1.25")
    assert parsed.colors == [Color.BLUE]
    assert parsed.wait == timedelta(minutes=5)


def test_constraints_beyond_the_schema_are_enforced():
    def places(wrong):
        return [line.partition(":")[0] for line in refused(AllFields, ANSWER | wrong)]

    assert places({"above": 4, "share": 0}) == ["above", "share"]
    wrong = {"name": "ABC", "price": 1234567, "identity": "x"}
    assert places(wrong) == ["Your name", "price", "identity"]


def test_a_reason_names_fields_by_their_titles_and_a_log_by_their_names():
    class Size(BaseModel):
        cpus: int = Field(title="Virtual CPUs")
        zones: list[Literal["a", "b"]] = Field(title="Zones")

    with pytest.raises(InvalidAnswer) as caught:
        Form.from_model(Size).parse({"cpus": "x", "zones": ["c"]})
    places = [
        [line.partition(":")[0] for line in text.splitlines()]
        for text in (caught.value.reason, caught.value.log_reason)
    ]
    assert places == [["Virtual CPUs", "Zones[0]"], ["cpus", "zones[0]"]]


def test_a_reason_never_quotes_the_answer():
    lines = refused(AllFields, dict.fromkeys(AllFields.model_fields, SECRET))
    assert len(lines) > 10
    assert "hunter" not in "\n".join(lines)


def test_null_counts_as_left_out_for_an_optional_field():
    required = {name: value for name, value in ANSWER.items() if name not in ("above", "price")}
    given = {name: required.get(name) for name in AllFields.model_fields} | {"above": 3}
    assert Form.from_model(AllFields).parse(given) == Form.from_model(AllFields).parse(
        required | {"above": 3}
    )


@pytest.mark.parametrize("name", ["name", "day", "above", "mode", "shades"])
def test_null_is_no_value_of_a_required_field(name):
    label = AllFields.model_fields[name].title or name
    assert [line.partition(":")[0] for line in refused(AllFields, ANSWER | {name: None})] == [label]


@pytest.mark.parametrize("annotation", [UUID, time, date, Annotated[str, Field(pattern="^a")]])
def test_an_empty_text_counts_as_left_out_for_an_optional_field_whose_type_refuses_it(annotation):
    form = Form.from_model(create_model("Model", field=(annotation | None, None), note=(str, "n")))
    parsed = form.parse({"field": "", "note": ""})
    assert (parsed.field, parsed.note) == (None, "")


@pytest.mark.parametrize("keywords", [{"propertyNames": {"maxLength": 3}}, {"$schema": "https://a.example"}])
def test_keywords_beside_the_fields_do_not_apply_to_an_answer(keywords):
    form = Form.from_model(create_model("Model", __config__={"json_schema_extra": keywords}, name=str))
    assert form.parse({"name": "a", "other": 1}).name == "a"


def test_null_stays_a_value_of_an_optional_field_that_accepts_it():
    class Nickname(BaseModel):
        nickname: str | None = "Ada"

    assert Form.from_model(Nickname).parse({"nickname": None}).nickname is None


@pytest.mark.parametrize(
    ("model", "value", "reason"),
    [(float, float("inf"), "JSON"), (float, object(), "JSON"), (str, "\ud800", "surrogate")],
)
def test_content_that_is_not_json_is_an_invalid_answer(model, value, reason):
    [line] = refused(model, {"value": value})
    assert reason in line


def test_the_reason_has_the_messages_of_the_authors_validators():
    def quote(value: int) -> None:
        raise PydanticCustomError("quoted", f"{value} quoted")

    class Window(BaseModel):
        first: int
        last: int
        more: Annotated[int, AfterValidator(quote)] = 0

        @field_validator("first")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

        @model_validator(mode="after")
        def ordered(self):
            if self.first > self.last:
                raise ValueError("swapped")
            return self

        @field_validator("last")
        @classmethod
        def near(cls, value: int) -> int:
            assert value < 10, f"{value} is far"
            return value

    assert refused(Window, {"first": 1, "last": 2}) == ["first: odd"]
    assert refused(Window, {"first": 4, "last": 2}) == ["answer: swapped"]
    with pytest.raises(InvalidAnswer) as caught:
        Form.from_model(Window).parse({"first": 3, "last": 12, "more": 7})
    assert {"odd", "12", "far", "7"} <= words(caught.value.reason)
    assert [line.split(":")[0] for line in caught.value.log_reason.splitlines()] == ["first", "last", "more"]
    assert not {"odd", "3", "12", "far", "7"} & words(caught.value.log_reason)
