"""Mirrored parameters: valid declarations, and agreement with the official client."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypeVar

import pytest
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType, TypedDict

from mcp_roundtrip.arguments.mcp_header import McpHeader
from mcp_roundtrip.arguments.own_input_schema import OwnSchemaArguments
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.errors import DefinitionError


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Place(BaseModel):
    region: Annotated[str, McpHeader("Region")]


class Unknown: ...


def arguments(function: Callable[..., Any]) -> Arguments:
    return Arguments.from_function(function)


def raw(schema: dict[str, Any]) -> OwnSchemaArguments:
    return OwnSchemaArguments.from_schema(lambda arguments: None, schema)


def one(annotation: Any) -> Arguments:
    def tool(a): ...

    tool.__annotations__ = {"a": annotation}
    return arguments(tool)


def of_properties(properties: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **beside}


# Valid declarations


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[str, McpHeader("H")], {"type": "string"}),
        (Annotated[int, McpHeader("H")], {"type": "integer"}),
        (Annotated[int, Field(ge=1), McpHeader("H")], {"type": "integer", "minimum": 1}),
        (Annotated[str, McpHeader("H"), Field(description="Where")],
         {"type": "string", "description": "Where"}),
        (Annotated[Color, McpHeader("H")], {"type": "string", "enum": ["red", "blue"]}),
        (Annotated[Color, Field(description="Hue"), McpHeader("H")],
         {"type": "string", "enum": ["red", "blue"], "description": "Hue"}),
        (Annotated[Level, McpHeader("H")], {"type": "integer", "enum": [1, 2]}),
        (Annotated[date, McpHeader("H")], {"type": "string", "format": "date"}),
    ],
)  # fmt: skip
def test_strings_integers_and_booleans_may_be_mirrored(annotation: Any, schema: dict[str, Any]) -> None:
    found = one(annotation)
    assert found.json_schema()["properties"]["a"] == {**schema, "x-mcp-header": "H"}
    assert found.parameter_headers == {("a",): "H"}


def test_a_mirrored_parameter_may_have_a_default_and_an_alias() -> None:
    def tool(
        a: Annotated[str, McpHeader("A")] = "x",
        b: Annotated[int, Field(alias="Bee"), McpHeader("B")] = 1,
        c: Annotated[bool, McpHeader("C")] = Field(True, alias="Sea"),
    ): ...

    found = arguments(tool)
    assert found.parameter_headers == {("a",): "A", ("Bee",): "B", ("Sea",): "C"}
    assert set(found.json_schema()["properties"]) == {"a", "Bee", "Sea"}


def test_an_own_schema_uses_the_keyword_also_in_nested_objects() -> None:
    schema = of_properties(
        {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limits": of_properties({"rows": {"type": "integer", "x-mcp-header": "Rows"}}),
            "x-mcp-header": {"type": "string"},
        }
    )
    found = raw(schema)
    assert found.parameter_headers == {("region",): "Region", ("limits", "rows"): "Rows"}
    assert found.json_schema() == schema


@pytest.mark.parametrize("name", ["Region", "a", "X-1", "!#$%&'*+-.^_`|~", "0"])
def test_any_token_is_a_valid_name(name: str) -> None:
    assert McpHeader(name).name == name


# Invalid declarations


NOT_TOKENS = ["", " ", "My Region", "Region:", "Größe", "a\r\nb", "a\n", "\x00", "(a)", "a/b", 'a"b', "a,b"]


@pytest.mark.parametrize("name", [*NOT_TOKENS, 1, None, ["Region"]])
def test_a_name_that_is_not_a_token_is_refused(name: Any) -> None:
    with pytest.raises(DefinitionError):
        McpHeader(name)
    with pytest.raises(DefinitionError):
        raw(of_properties({"a": {"type": "string", "x-mcp-header": name}}))


Region = TypeAliasType("Region", Annotated[str, McpHeader("Region")])
T = TypeVar("T")
Listed = TypeAliasType("Listed", list[T], type_params=(T,))


@dataclass
class Site:
    region: Annotated[str, McpHeader("Region")]


class Row(TypedDict, total=False):
    region: NotRequired[Annotated[str, McpHeader("Region")]]


class Pair(NamedTuple):
    region: Annotated[str, McpHeader("Region")]


class Inner(BaseModel):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})


class Outer(BaseModel):
    itself: "Outer | None" = None
    inner: dict[str, Inner]


class Strange(BaseModel):
    model_config = ConfigDict(json_schema_extra=of_properties({"a": {"type": "string", "x-mcp-header": "A"}}))


OF_OTHER_TYPES = [
    *(float, str | None, bool | int, list[str], dict[str, str], Literal["a", 1], Place, Any, Unknown),
    *(Annotated[str, McpHeader("I")], list[Annotated[str, McpHeader("I")]]),
    Annotated[str, WithJsonSchema({"type": "number"})],
]
NESTED = [
    Annotated[str, McpHeader("H")] | None,
    *(Place, list[Place], Literal["a"] | Place, NewType("Named", Place), Site, Row, Pair, Outer, Strange),
    *(Region, list[Region], Listed[Region], Annotated[Region, Field(min_length=1)]),
]
OWN_SCHEMAS = [
    Annotated[str, Field(json_schema_extra={"x-mcp-header": "A"})],
    Annotated[str, Field(json_schema_extra=lambda schema: schema.update({"x-mcp-header": "A"}))],
    Annotated[str, WithJsonSchema({"type": "string", "x-mcp-header": "A"})],
    Annotated[str, McpHeader("A"), WithJsonSchema({"type": "string"})],
]


@pytest.mark.parametrize(
    "annotation", [*(Annotated[each, McpHeader("H")] for each in OF_OTHER_TYPES), *NESTED, *OWN_SCHEMAS]
)
def test_a_header_of_another_type_inside_a_type_or_of_a_schema_is_refused(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match="tool: "):
        one(annotation).json_schema()


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[Region, McpHeader("H")],
        Annotated[str, McpHeader("H"), Field(json_schema_extra={"x-mcp-header": "H"})],
    ],
)
def test_the_parameters_own_header_replaces_one_of_its_type(annotation: Any) -> None:
    found = one(annotation)
    assert x_mcp_header_map(found.json_schema()) == found.parameter_headers == {("a",): "H"}


Lost = TypeAliasType("Lost", "Nobody")  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("annotation", [Lost, Literal["x-mcp-header"], Unknown])
def test_types_without_headers_or_not_yet_resolvable_are_accepted(annotation: Any) -> None:
    assert one(annotation).parameter_headers == {}


def test_a_header_as_default_is_refused() -> None:
    def tool(a: str = McpHeader("A")): ...  # type: ignore[assignment]  # the mistake in question

    with pytest.raises(DefinitionError, match="'a'"):
        arguments(tool)


def test_two_parameters_of_one_header_are_refused_in_any_case() -> None:
    def tool(a: Annotated[str, McpHeader("Region")], b: Annotated[str, McpHeader("REGION")]): ...

    with pytest.raises(DefinitionError, match="'a' and 'b'"):
        arguments(tool)
    region = {"type": "string", "x-mcp-header": "Region"}
    with pytest.raises(DefinitionError, match=r"'a' and 'c\.b'"):
        raw(of_properties({"a": region, "c": of_properties({"b": {**region, "x-mcp-header": "region"}})}))


MIRRORED = {"type": "string", "x-mcp-header": "A"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "x-mcp-header": "A"},
        of_properties({"a": {"type": "array", "items": MIRRORED}}),
        of_properties({"a": {"anyOf": [MIRRORED, {"type": "null"}]}}),
        of_properties({}, oneOf=[of_properties({"a": MIRRORED})]),
        {"type": "object", "not": of_properties({"a": MIRRORED})},
        {"type": "object", "if": of_properties({"a": MIRRORED})},
        of_properties({"a": {"$ref": "#/$defs/a"}}, **{"$defs": {"a": MIRRORED}}),
        {"type": "object", "additionalProperties": MIRRORED},
        {"type": "object", "patternProperties": {"^a": MIRRORED}},
        {"type": "object", "dependentSchemas": {"a": of_properties({"b": MIRRORED})}},
        of_properties({"a": {"type": "number", "x-mcp-header": "A"}}),
        of_properties({"a": {"type": ["string", "null"], "x-mcp-header": "A"}}),
        of_properties({"a": {"enum": ["x"], "x-mcp-header": "A"}}),
        of_properties({"a": {"x-mcp-header": "A"}}),
    ],
)
def test_a_schema_that_clients_refuse_is_refused_at_registration(schema: dict[str, Any]) -> None:
    assert find_invalid_x_mcp_header(schema) is not None
    with pytest.raises(DefinitionError):
        raw(schema)


@pytest.mark.parametrize("values", ["const", "default"])
def test_a_value_that_looks_like_a_declaration_is_ignored(values: str) -> None:
    schema = of_properties({"a": {"type": "object", values: {"x-mcp-header": "A"}}})
    assert raw(schema).parameter_headers == {}


def test_malformed_properties_are_left_to_schema_validation() -> None:
    assert raw({"type": "object", "properties": ["a"], "$defs": {"b": True}}).parameter_headers == {}


# Elsewhere


def test_the_official_client_accepts_every_tool_and_finds_the_same_headers() -> None:
    def tool(
        a: Annotated[str, McpHeader("Region")],
        b: Annotated[Color, McpHeader("Color")],
        c: Color,
        d: Annotated[int, Field(alias="Dee"), McpHeader("D")] = 1,
    ): ...

    found = arguments(tool)
    assert find_invalid_x_mcp_header(found.json_schema()) is None
    assert x_mcp_header_map(found.json_schema()) == found.parameter_headers
