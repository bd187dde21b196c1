"""Form elicitation of one field: the answer of a single type, and of options known only at run time."""

import gc
from dataclasses import make_dataclass
from datetime import date, time, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, NaiveDatetime, RootModel, TypeAdapter
from typing_extensions import TypeAliasType

from mcp_roundtrip import one_of
from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidAnswer
from support.texts import words


class Color(Enum):
    RED = "red"
    BLUE = "blue"


def test_few_forms_of_many_options_are_kept():
    for call in range(20):
        Form.from_model(one_of(f"{call} {option}" for option in range(500)))
    forms = [each for each in gc.get_objects() if isinstance(each, Form)]
    assert sum(len(repr(each.requested_schema)) > 4_096 for each in forms) <= 8


def test_a_form_is_built_once_per_type():
    assert Form.from_model(Color) is Form.from_model(Color)


def test_choices_are_shown_in_their_order():
    """The types are equal in Python."""
    choices = ["a", "b"], ["b", "a"]
    forms = [Form.from_model(Literal[tuple(each)]) for each in choices]
    assert [form.requested_schema["properties"]["value"]["enum"] for form in forms] == [*choices]


@pytest.mark.parametrize(
    ("annotation", "schema", "answer", "value"),
    [
        (float, {"type": "number"}, 3, 3.0),
        (date, {"type": "string", "format": "date"}, "2026-07-28", date(2026, 7, 28)),
        (Color, {"type": "string", "enum": ["red", "blue"]}, "red", Color.RED),
        (Literal["a"] | Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (
            list[Color],
            {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
            ["red"],
            [Color.RED],
        ),
        (
            Annotated[int, Field(ge=1, description="How many")],
            {"type": "integer", "minimum": 1, "description": "How many"},
            3,
            3,
        ),
        (RootModel[int], {"type": "integer"}, 3, RootModel[int](3)),
    ],
)
def test_a_single_field_is_wrapped_and_unwrapped(annotation, schema, answer, value):
    assert Form.from_model(annotation).requested_schema == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
    }
    parsed = Form.from_model(annotation).parse({"value": answer})
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("annotation", [Annotated[str | None, Field()], TypeAliasType("Name", str | None)])
def test_an_optional_single_field_may_be_omitted(annotation):
    assert "required" not in Form.from_model(annotation).requested_schema
    assert Form.from_model(annotation).parse({}) is None
    assert Form.from_model(annotation).parse({"value": None}) is None
    assert Form.from_model(annotation).parse({"value": "a"}) == "a"


@pytest.mark.parametrize(
    "annotation", [bytes, Path, Annotated[str, Field(json_schema_extra={"format": "phone"})]]
)
def test_an_empty_text_is_the_value_of_a_field_whose_type_accepts_it(annotation):
    accepted = TypeAdapter(annotation).validate_python("")
    assert Form.from_model(annotation).parse({"value": ""}) == accepted
    assert Form.from_model(annotation | None).parse({"value": ""}) == accepted


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[str, Field(pattern=r"^\w+$")], "José"),
        (NaiveDatetime, "2026-07-28"),
        (timedelta, "1:30:00"),
    ],
)
def test_pydantic_reads_what_a_form_does_not_tell_the_client(annotation, value):
    read = Form.from_model(annotation).parse({"value": value})
    assert read == TypeAdapter(annotation).validate_python(value)


EMAIL = Annotated[str, Field(json_schema_extra={"format": "email"})]
NUMBERED = Annotated[str, Field(pattern="^A", json_schema_extra={"minLength": 3})]


@pytest.mark.parametrize(
    ("annotation", "value", "named"),
    [
        (date, "1785196800", {"date", "2026-07-28"}),
        (date, 20260728, {"string"}),
        (EMAIL, "Ada", {"email"}),
        (NUMBERED, "A1", {"3", "characters"}),
        (time, "soon", {"valid", "time"}),  # not its pattern
    ],
)
def test_a_reason_says_what_the_form_tells_the_client_which_has_no_null(annotation, value, named):
    for each in (annotation, annotation | None):
        with pytest.raises(InvalidAnswer) as caught:
            Form.from_model(each).parse({"value": value})
        assert {"value", *named} <= words(caught.value.reason)
        assert "null" not in words(caught.value.reason)


def test_a_text_too_long_for_a_pattern_that_only_pydantic_matches_is_refused():
    form = Form.from_model(Annotated[str, Field(pattern="^([a-z]{1,64})+$")])
    with pytest.raises(InvalidAnswer, match="too long"):
        form.parse({"value": "a" * 400_000})


@pytest.mark.parametrize(
    "value",
    [
        *(["red", "blue"], ("red",), {"red"}, {"red": 1}, {"red": 1}.keys(), [], range(3), iter(["red"])),
        *("red", b"red", 3, 1.5, True, lambda: str, make_dataclass("Point", ())(), Enum("Color", "RED").RED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_in_the_place_of_a_type_is_refused_with_the_types_to_pass(value):
    with pytest.raises(DefinitionError, match=rf" {type(value).__name__}; .*one_of\("):
        Form.from_model(value)


def test_options_are_offered_in_order_and_one_of_them_is_the_answer() -> None:
    form = Form.from_model(one_of(["b", "a"], description="Which?"))
    assert form.requested_schema["properties"] == {
        "value": {"type": "string", "enum": ["b", "a"], "description": "Which?"}
    }
    assert form.parse({"value": "a"}) == "a"
