"""Arguments as models and clients send them: JSON as text, arguments of their own, empty text."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, EmailStr, Field

from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.arguments.own_input_schema import OwnSchemaArguments
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.internal_errors import ArgumentsError, InvalidAnswer
from mcp_roundtrip.schema.input_validation import MAX_PARSED_VALUES
from mcp_roundtrip.schema.json_schema_generator import build_json_schema
from mcp_roundtrip.schema.serialization import type_adapter


class Size(BaseModel):
    vcpus: int
    tags: list[str] = []


SMALL = Size(vcpus=1)


def tool(
    name: str,
    count: int = 0,
    sizes: list[Size] | None = None,
    size: Size = SMALL,
    sure: bool = False,
    level: Literal["low", "high"] = "low",
    share: float | None = None,
    anything: Any = None,
) -> None: ...


typed = Arguments.from_function(tool)


def raw_tool(arguments: dict[str, Any]) -> None: ...


raw = OwnSchemaArguments.from_schema(raw_tool, typed.json_schema())


def lenient(parameters: Any) -> Arguments:
    found: Arguments = replace(parameters, is_lenient=True)
    return found


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"count": "5"}, {"count": 5}),
        ({"sure": "true"}, {"sure": True}),
        ({"share": "null"}, {"share": None}),
        ({"size": '{"vcpus": 2}'}, {"size": Size(vcpus=2)}),
        ({"size": {"vcpus": "2", "tags": "[]"}}, {"size": Size(vcpus=2)}),
        ({"size": '{"vcpus": "2", "tags": "[\\"a\\"]"}'}, {"size": Size(vcpus=2, tags=["a"])}),
        ({"sizes": ['{"vcpus": 2}']}, {"sizes": [Size(vcpus=2)]}),
        ({"name": "5"}, {"name": "5"}),
        ({"anything": "5"}, {"anything": "5"}),
    ],
)
def test_a_lenient_tool_reads_json_from_text_where_the_schema_refuses_text(
    given: Mapping[str, Any], read: Mapping[str, Any]
) -> None:
    values = lenient(typed).validate({"name": "a", **given})
    assert {name: values[name] for name in read} == read
    assert lenient(raw).validate({"name": "a", **given})
    if given != read:
        for strict in (typed, raw):
            with pytest.raises(ArgumentsError):
                strict.validate({"name": "a", **given})


def test_a_raw_tool_gets_the_other_arguments_as_they_were_sent() -> None:
    values = lenient(raw).validate({"name": "a", "share": 2.0, "count": "5"})["arguments"]
    assert (type(values["share"]), values["count"]) == (float, 5)


def test_each_text_of_a_long_input_is_read() -> None:
    given = {"name": "a" * 3_000_000, "count": "5", "sizes": ['{"vcpus": "2"}'] * 9, "sure": "true"}
    values = lenient(typed).validate(given)
    assert (values["count"], values["sizes"], values["sure"]) == (5, [Size(vcpus=2)] * 9, True)
    assert lenient(raw).validate(given)


@pytest.mark.parametrize(
    "given",
    [
        {"count": "five"},
        {"count": "NaN"},
        {"count": '"5"'},
        {"size": '{"vcpus": 1, "vcpus": 2}'},
        {"sizes": "[" * 1_000},
        {"sizes": json.dumps([{"vcpus": 1}] * MAX_PARSED_VALUES)},
        {"count": "\ud800"},
        {"size": '{"vcpus": "\\ud800"}'},
        {"size": '{"vcpus": 1, "\\ud800": 1}', "count": "five"},
    ],
)
def test_other_values_are_refused_as_by_a_strict_tool(given: Mapping[str, Any]) -> None:
    arguments = {"name": "a", **given}
    for parameters in (typed, raw):
        with pytest.raises(ArgumentsError) as strict:
            parameters.validate(arguments)
        with pytest.raises(ArgumentsError) as refused:
            lenient(parameters).validate(arguments)
        assert str(refused.value) == str(strict.value)


def test_the_values_in_all_texts_of_a_call_have_one_limit() -> None:
    lists = {"type": "object", "properties": {name: {"type": "array"} for name in ("first", "second")}}
    parameters = lenient(OwnSchemaArguments.from_schema(raw_tool, lists))
    text, values = json.dumps([0] * (MAX_PARSED_VALUES - 1)), [0] * (MAX_PARSED_VALUES - 1)
    one = {"first": text, "second": []}
    assert parameters.validate(one) == {"arguments": {"first": values, "second": []}}
    with pytest.raises(ArgumentsError):
        parameters.validate({"first": text, "second": "[0]"})


def test_arguments_that_clients_add_are_dropped_unless_the_schema_has_them() -> None:
    def known(name: str, sessionId: str) -> None: ...

    added = {"name": "a", "toolCallId": "call_1", "sessionId": "s"}
    assert typed.known(added) == raw.known(added) == {"name": "a"}
    assert Arguments.from_function(known).known(added) == {"name": "a", "sessionId": "s"}
    assert typed.known({"name": "a", "other": 1}) == {"name": "a", "other": 1}


def test_a_lenient_tool_drops_all_unknown_arguments() -> None:
    open_schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    open_tool = OwnSchemaArguments.from_schema(raw_tool, open_schema)
    assert lenient(typed).known({"name": "a", "other": 1}) == {"name": "a"}
    assert lenient(raw).known({"name": "a", "other": 1}) == {"name": "a"}
    assert lenient(open_tool).known({"name": "a", "other": 1}) == {"name": "a", "other": 1}


def test_a_lenient_tool_keeps_arguments_that_only_a_pattern_of_its_schema_names() -> None:
    schema = {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False}
    by_pattern = OwnSchemaArguments.from_schema(raw_tool, schema)
    assert lenient(by_pattern).known({"x-size": 1}) == {"x-size": 1}


class Contact(BaseModel):
    name: str
    email: EmailStr | None = None
    count: int = 1
    note: str = "-"


def test_empty_text_counts_as_left_out_where_the_schema_refuses_it() -> None:
    content = {"name": "", "email": "", "count": "", "note": ""}
    assert Form.from_model(Contact).parse(content) == Contact(name="", note="")

    def contact(name: str, email: EmailStr | None = None, level: Literal["a", "b"] = "b") -> None: ...

    found = Arguments.from_function(contact)
    assert found.validate({"name": "", "email": "", "level": ""}) == {"name": "", "email": None, "level": "b"}
    with_default = build_json_schema(type_adapter(Contact))
    own = OwnSchemaArguments.from_schema(raw_tool, with_default)
    assert own.validate(content) == {"arguments": {"name": "", "note": ""}}


def test_empty_text_is_refused_for_a_required_member() -> None:
    class Required(BaseModel):
        size: Annotated[str, Field(min_length=1)]

    with pytest.raises(InvalidAnswer):
        Form.from_model(Required).parse({"size": ""})

    def required(size: Annotated[str, Field(min_length=1)]) -> None: ...

    with pytest.raises(ArgumentsError):
        Arguments.from_function(required).validate({"size": ""})
