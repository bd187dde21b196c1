"""For a plain type, pydantic's strict mode decides as the JSON Schema does, and makes the same value."""

import json
from collections.abc import Mapping
from dataclasses import make_dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, WithJsonSchema, create_model

from mcp_roundtrip.arguments.mcp_header import McpHeader
from mcp_roundtrip.internal_errors import InvalidValue
from mcp_roundtrip.schema.core_schema_traversal import is_plain_to_read, is_plain_to_write
from mcp_roundtrip.schema.input_validation import TypedReader
from mcp_roundtrip.schema.json_schema_generator import build_json_schema
from mcp_roundtrip.schema.json_schema_validator import CompiledSchema
from support.json_values import values
from support.type_samples import ZOO


class Color(Enum):
    RED = "red"
    BLUE = "blue"


SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(int, float, bool, str, Any, None, Color, Literal["a", "b"]),
        Annotated[int, Field(ge=1, lt=9)],
        Annotated[float, Field(gt=0, le=1.5)],
        Annotated[str, Field(min_length=1, max_length=2)],
        Annotated[str, Field(description="A text")],
    ]
)
NAMES = ["a", "b", "size"]


@st.composite
def records(draw: Any, members: st.SearchStrategy[Any]) -> Any:
    """Return a model or a dataclass."""
    fields = draw(st.dictionaries(st.sampled_from(NAMES), members, min_size=1))
    if draw(st.booleans()):
        return make_dataclass("Record", list(fields.items()))
    defaults = {name: (type_, draw(st.sampled_from([..., None]))) for name, type_ in fields.items()}
    return create_model("Record", **defaults)


TYPES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda each: list[each]),
        inner.map(lambda each: Annotated[list[each], Field(max_length=2)]),
        inner.map(lambda each: dict[str, each]),
        inner.filter(lambda each: each is not None).map(lambda each: each | None),
        records(inner),
    ),
    max_leaves=5,
)


def reader(annotation: Any) -> TypedReader:
    types = TypeAdapter(create_model("Arguments", value=(annotation, ...)))
    return TypedReader(lambda: build_json_schema(types), "arguments", types=types)


def outcome(read: TypedReader, value: Mapping[str, Any]) -> str:
    try:
        return repr(read.read(value))
    except InvalidValue:
        return "refused"


PLAIN = [each for each in ZOO.values() if is_plain_to_read(TypeAdapter(each).core_schema)]
"""Those sample types that are plain."""


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(TYPES | st.sampled_from(PLAIN), st.data())
def test_a_plain_type_is_read_alike_with_and_without_its_json_schema(annotation: Any, data: Any) -> None:
    plain, checked = reader(annotation), reader(annotation)
    assert plain.is_plain
    vars(checked)["is_plain"] = False
    for value in data.draw(st.lists(values(plain.json_schema()), max_size=4)):
        if isinstance(value, dict):
            assert outcome(plain, value) == outcome(checked, value), value


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TYPES, st.data())
def test_what_a_plain_type_writes_is_valid_if_it_is_read_back(annotation: Any, data: Any) -> None:
    types = TypeAdapter(annotation)
    if not is_plain_to_write(types.core_schema):
        return
    schema = build_json_schema(types, "serialization")
    value = data.draw(values(schema))
    try:
        written = types.dump_json(types.validate_python(value), warnings="error")
    except ValueError:
        return
    try:
        types.validate_json(written, strict=True)
        is_read_back = True
    except ValueError:
        is_read_back = False
    assert is_read_back is CompiledSchema.compile(schema).is_valid(json.loads(written))


class Open(BaseModel, extra="allow"):
    a: int


class Extended(BaseModel, json_schema_extra={"required": ["b"]}):
    a: int


@pytest.mark.parametrize(
    "type_",
    [
        *(Open, Extended, set[int], dict, dict[int, str], tuple[int, str], int | str, Literal[1], bytes),
        Annotated[str, Field(pattern="^a$")],
        Annotated[int, Field(multiple_of=3)],
        Annotated[int, WithJsonSchema({"enum": [1]})],
        Annotated[str, McpHeader("Region")],
        Annotated[str, Field(json_schema_extra={"enum": ["a"]})],
    ],
)
def test_a_type_that_only_its_json_schema_describes_is_not_plain(type_: Any) -> None:
    assert not is_plain_to_read(TypeAdapter(type_).core_schema)
    assert not is_plain_to_write(TypeAdapter(type_).core_schema)
