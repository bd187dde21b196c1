"""Arguments: the advertised schema, the converted values, and the text of refusals."""

import functools
import re
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import jsonschema
import pytest
from mcp_types import Tool
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypeAliasType, TypedDict

from mcp_roundtrip import Context
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.json_schema_generator import build_json_schema
from support.function_calls import count_function_calls


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(BaseModel):
    vcpus: int = Field(ge=1, le=16, description="Virtual CPUs")
    label: str = Field("s", title="Label on the box")


class Titled(BaseModel):
    model_config = ConfigDict(title="A titled model", strict=True)
    day: date


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    verbose: bool


def arguments(function):
    return Arguments.from_function(function)


def schema(function):
    found = arguments(function).json_schema()
    jsonschema.Draft202012Validator.check_schema(found)
    Tool(name="t", input_schema=found)
    return found


def refusal(function, raw):
    with pytest.raises(ArgumentsError) as caught:
        arguments(function).validate(raw)
    assert caught.value.__suppress_context__
    return str(caught.value).splitlines()


# The schema


def test_defaults_literals_optionals_and_constraints_are_in_the_schema():
    def tool(
        name: Annotated[str, Field(min_length=1)],
        mode: Literal["a", "b"] = "a",
        count: int | None = None,
        tags: list[str] = [],  # noqa: B006 - a default that must reach the schema
    ): ...

    assert schema(tool) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_an_option_that_occurs_twice_is_in_the_schema_once():
    Resolve = Enum("Resolve", {"RED": 1, "CRIMSON": 1, "BLUE": 2})  # the name of a marker of the SDK

    def tool(shade: Resolve = Resolve.RED): ...

    assert Arguments.from_function(tool).json_schema()["$defs"]["Resolve"]["enum"] == [1, 2]
    written = build_json_schema(TypeAdapter(Literal[Resolve.RED, 1, 2]), "serialization")
    assert written["enum"] == [1, 2]


def test_only_titles_of_the_author_are_in_the_schema():
    def tool(size: Size, titled: Titled, own: Annotated[int, Field(title="Mine")], point: Point): ...

    found = schema(tool)
    assert "title" not in found
    assert found["properties"]["own"]["title"] == "Mine"
    assert "title" not in found["properties"]["size"]
    assert "title" not in found["$defs"]["Size"]
    assert "title" not in found["$defs"]["Point"]
    assert found["$defs"]["Size"]["properties"]["label"]["title"] == "Label on the box"
    assert found["$defs"]["Titled"]["title"] == "A titled model"


def test_descriptions_are_read_from_the_docstring_unless_the_field_has_one():
    def tool(name: str, size: Size, own: Annotated[int, Field(description="explicit")] = 1):
        """Do it.

        Args:
            name: The name.
            size: The size.
            own: Not this.
        """

    found = schema(tool)
    assert found["properties"]["name"]["description"] == "The name."
    assert found["properties"]["size"] == {"$ref": "#/$defs/Size", "description": "The size."}
    assert found["properties"]["own"]["description"] == "explicit"


def test_a_default_without_json_form_applies_but_is_not_in_the_schema():
    marker = object()

    def tool(x: Any = marker): ...

    assert schema(tool)["properties"] == {"x": {}}
    assert arguments(tool).validate({}) == {"x": marker}


def test_names_reserved_by_pydantic_models_can_be_used():
    def tool(json: str, copy: int, model_config: str, _private: int, schema: str, title: str): ...

    raw = {"json": "a", "copy": 1, "model_config": "b", "_private": 2, "schema": "c", "title": "d"}
    assert list(schema(tool)["properties"]) == list(raw)
    assert arguments(tool).validate(raw) == raw


def test_a_field_as_default_is_a_constraint():
    at_least_1, two, empty = Field(ge=1), Field(2, description="B"), Field([])

    def tool(a: int = at_least_1, b: int = two, c: list[int] = empty, d: int = ...): ...

    assert schema(tool)["required"] == ["a", "d"]
    assert schema(tool)["properties"]["b"] == {"type": "integer", "default": 2, "description": "B"}
    assert arguments(tool).validate({"a": 1, "d": 3}) == {"a": 1, "b": 2, "c": [], "d": 3}


def test_an_alias_is_the_name_on_the_wire():
    def tool(from_: Annotated[str, Field(alias="from")]):
        """Do it.

        :param from_: Where from.
        """

    assert schema(tool)["properties"] == {"from": {"type": "string", "description": "Where from."}}
    assert arguments(tool).validate({"from": "here"}) == {"from_": "here"}


# The function


def test_a_subclass_of_a_context_type_or_an_alias_is_a_context():
    class Special(Context): ...

    def tool(c: Special): ...

    assert arguments(tool).signature.context_parameter == "c"
    tool.__annotations__["c"] = TypeAliasType("Alias", Special)
    assert arguments(tool).signature.context_parameter == "c"


def test_methods_partials_of_classes_and_instances_are_read_like_functions():
    class Service(NamedTuple):
        name: str

        async def tool(self, name: str, count: int = 1): ...

        async def __call__(self, name: str): ...

    assert arguments(functools.cache(Service("a").tool)).names == ("name", "count")
    assert schema(functools.partial(Service))["properties"] == {"name": {"type": "string"}}
    assert arguments(Service("a")).signature.is_async
    assert not arguments(lambda: None).signature.is_async


def test_an_object_that_decorates_a_function_is_read_like_the_function():
    class Decorator:
        """Counts."""

        def __init__(self, function):
            functools.update_wrapper(self, function)

        def __call__(self, *args, **kwargs):
            """Count and call."""

    @Decorator
    def tool(c: Context, name: str):
        """Do it."""

    signature = arguments(tool).signature
    assert (signature.context_parameter, signature.prose) == ("c", "Do it.")
    assert schema(tool)["properties"]["name"]["type"] == "string"


# The values


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


SECRET = "hunter2-hunter2"


def test_a_refusal_never_quotes_arguments():
    from ipaddress import IPv4Address, IPv6Network
    from uuid import UUID
    from zoneinfo import ZoneInfo

    def tool(
        pet: Annotated[Cat | Dog, Field(discriminator="kind")],
        identity: UUID,
        count: int,
        color: Color,
        when: date,
        size: Size,
        short: Annotated[str, Field(max_length=3)],
        digits: Annotated[str, Field(pattern="^[0-9]+$")],
        address: IPv4Address,
        network: IPv6Network,
        zone: ZoneInfo,
    ): ...

    names = ["identity", "count", "color", "when", "size", "short", "digits", "unknown"]
    names += ["address", "network", "zone"]
    lines = refusal(tool, dict.fromkeys(names, SECRET) | {"pet": {"kind": SECRET}})
    assert len(lines) == 10
    assert "hunter" not in "\n".join(lines)


def test_a_field_that_a_dataclass_sets_itself_is_no_argument():
    @dataclass
    class Counted:
        names: list[str]
        count: int = field(init=False, default=0)

    def tool(counted: Counted): ...

    assert [*schema(tool)["$defs"]["Counted"]["properties"]] == ["names"]


def test_the_number_of_reported_errors_is_bounded():
    def tool(numbers: list[int]): ...

    assert len(refusal(tool, {"numbers": ["x"] * 1000})) < 30


def test_a_lone_surrogate_is_refused():
    def tool(name: str): ...

    for half in ("\ud800", "\udc00", "\ud83dx"):
        for given in ({"name": half}, {half: "a"}):
            [line] = refusal(tool, given)
            assert re.match("arguments: .*surrogate", line)
    for text in ("😀", r"\ud800"):
        assert arguments(tool).validate({"name": text}) == {"name": text}


# Costs


def test_registration_and_validation_call_few_functions():
    def tool(name: str, count: int): ...

    found = arguments(tool)
    assert count_function_calls(lambda: arguments(tool)) <= 320
    assert count_function_calls(lambda: found.validate({"name": "a", "count": 1})) <= 20


# -- null -----------------------------------------------------------------------------------------------


class Level(Enum):
    LOW = "low"
    NONE = None


def optional(
    number: int = 7,
    size: Size = Size(vcpus=1),  # noqa: B008 - a default of an author's
    names: list[str] = [],  # noqa: B006 - as above
    annotated: Annotated[str, Field(default="a")] = "b",
    field: float = Field(0.5, alias="renamed"),
    options: Options = {"verbose": True},  # noqa: B006 - as above
    union: int | list[int] = 1,
): ...


@pytest.mark.parametrize("name", ["number", "size", "names", "annotated", "renamed", "options", "union"])
def test_null_counts_as_left_out_for_an_argument_with_a_default(name: str) -> None:
    found = arguments(optional)
    assert found.validate({name: None}) == found.validate({})
    assert found.validate(dict.fromkeys(found.names)) == found.validate({})


def nullable(
    required: str | None,
    number: int | None = 7,
    level: Level = Level.LOW,
    anything: Any = 1,
    literal: Literal["a", None] = "a",
): ...


def test_null_stays_a_value_where_the_schema_accepts_it() -> None:
    nulls = {"required": None, "number": None, "level": None, "anything": None, "literal": None}
    assert arguments(nullable).validate(nulls) == nulls | {"level": Level.NONE}


def test_null_is_refused_for_a_required_argument_and_an_unknown_one() -> None:
    def tool(name: str, count: int = 1): ...

    assert refusal(tool, {"name": None, "count": None})[0].startswith("arguments.name: ")
    assert refusal(tool, {"name": "a", "other": None}) == ["arguments.other: unknown argument"]


def test_null_is_refused_inside_of_an_argument() -> None:
    assert refusal(optional, {"size": {"vcpus": None}})[0].startswith("arguments.size.vcpus: ")
