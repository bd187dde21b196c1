"""Types that JSON has: what is read and written without pydantic is what pydantic would read and write."""

import json
import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Annotated, Any, Dict, List, Literal  # noqa: UP035 - authors write these, too

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.arguments.plain_json_types import JsonForm, JsonReader, form_of, json_text
from mcp_roundtrip.arguments.pydantic_types import ArgumentTypes
from mcp_roundtrip.arguments.typed_arguments import Arguments, StringArguments
from mcp_roundtrip.content.structured_output import StructuredOutput
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError, InvalidAnswer, InvalidValue
from mcp_roundtrip.protocol.constants import SINGLE_FIELD
from support.json_values import any_json, values_of_type


class Order(IntEnum):
    FIRST = 1


SCALARS = st.sampled_from([str, int, float, bool])
READ_TYPES = st.recursive(
    SCALARS | SCALARS.map(lambda each: each | None),
    lambda inner: inner.map(lambda each: list[each]) | inner.map(lambda each: dict[str, each]),
    max_leaves=3,
)
WRITTEN_TYPES = st.recursive(
    SCALARS | st.sampled_from([Any, list, dict, int | str | None, list[Any], dict[str, Any], object]),
    lambda inner: inner.map(lambda each: list[each]) | inner.map(lambda each: dict[str, each]),
    max_leaves=3,
)
DEFAULTS = st.sampled_from([..., ..., None, "", 0, 1.5, True])


def arguments_of(b: Any, a: Any, default: Any) -> Arguments:
    def tool(b, a): ...

    tool.__annotations__ = {"b": b, "a": a}
    tool.__defaults__ = () if default is ... else (default,)
    return Arguments.from_function(tool)


def outcome(read: Callable[[], dict[str, Any]]) -> str:
    try:
        values = read()
    except (ArgumentsError, InvalidValue) as error:
        return str(error)
    return repr((values["b"], values.get("a")))


@given(st.data())
def test_arguments_are_read_as_pydantic_reads_them(data):
    types = {"b": data.draw(READ_TYPES), "a": data.draw(READ_TYPES)}
    default = data.draw(DEFAULTS)
    arguments = arguments_of(**types, default=default)
    assert JsonReader.from_signature(arguments.signature) is not None
    by_pydantic = ArgumentTypes(arguments.signature, arguments.names, {})
    names = data.draw(st.lists(st.sampled_from(["b", "a", "other"]), unique=True) | st.just(["b", "a"]))
    raw = {name: data.draw(values_of_type(types.get(name, Any))) for name in names}
    assert outcome(lambda: arguments.validate(raw)) == outcome(lambda: by_pydantic.reader.read(raw))


TEXTS = (
    st.text(max_size=3)
    | any_json().map(json.dumps)
    | st.sampled_from(
        ["1", "1.0", "1e3", "01", "true", "True", "null", '"a"', '["1"]', '{"a": "1", "b": 2}', " 1"]
    )
)


@given(st.data())
def test_texts_are_read_as_pydantic_reads_them(data):
    types = {"b": data.draw(READ_TYPES), "a": data.draw(READ_TYPES)}

    def prompt(b, a=None): ...

    prompt.__annotations__ = types
    arguments = StringArguments.from_function(prompt)
    by_pydantic = StringArguments.from_function(prompt)
    vars(by_pydantic)["_json_reader"] = None
    raw = data.draw(st.dictionaries(st.sampled_from(["b", "a", "other"]), TEXTS))
    assert outcome(lambda: arguments.validate(raw)) == outcome(lambda: by_pydantic.validate(raw))


def test_a_text_is_not_read_as_json_if_the_type_accepts_text():
    def prompt(b: str, a: str | None): ...

    raw = {"b": '"1"', "a": "null"}
    assert StringArguments.from_function(prompt).validate(raw) == raw


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (List, [1]),  # noqa: UP006
        (Dict, {"a": 1}),  # noqa: UP006
        (Annotated[int, {"unit": "m"}], 1),
        (Annotated[list[str], []], ["a"]),
    ],
)
def test_types_that_have_no_items_or_no_hash_are_read_by_pydantic(annotation, value):
    arguments = arguments_of(b=annotation, a=int, default=1)
    assert JsonReader.from_signature(arguments.signature) is None
    assert arguments.validate({"b": value}) == {"b": value, "a": 1}


ODD = st.sampled_from(
    [Order.FIRST, OrderedDict(a=1), (1, 2), {1: 2}, math.nan, "\ud800", {"\udc00": 1}, b"a"]
)


@given(st.data())
def test_results_are_written_as_pydantic_writes_them(data):
    annotation = data.draw(WRITTEN_TYPES)
    value = data.draw(values_of_type(annotation) | ODD | st.lists(ODD, max_size=2))
    if (text := json_text(value, annotation)) is not None:
        output = StructuredOutput("tool", annotation)
        written = (output.untyped_to_json if annotation in (Any, object) else output.to_json)(value)
        assert (json.loads(text), text) == written
        assert repr(json.loads(text)) == repr(written[0])


@pytest.mark.parametrize(
    ("value", "annotation", "text"),
    [
        ({"a": [1, 2.5, None, True]}, dict[str, list[Any]], '{"a":[1,2.5,null,true]}'),
        ("é", str, '"é"'),
        (True, int, None),
        (1, float, None),
        (1e16, float, None),
        ({1: 2}, dict, None),
        (Order.FIRST, Any, None),
        ("\ud800", str, None),
    ],
)
def test_only_values_of_exactly_the_type_are_written(value, annotation, text):
    assert json_text(value, annotation) == text


def test_a_value_that_contains_itself_is_not_written():
    value: list[Any] = []
    value.append(value)
    assert json_text(value, list) is None


@pytest.mark.parametrize("default", [[], {}, object()])
def test_a_default_that_pydantic_copies_is_left_to_pydantic(default):
    arguments = arguments_of(int, list[int], default)
    assert JsonReader.from_signature(arguments.signature) is None


@pytest.mark.parametrize("annotation", [int | str, bool | int | None, dict[int, str], tuple[int], Order])
def test_a_type_that_json_has_not_is_left_to_pydantic(annotation):
    assert JsonReader.from_signature(arguments_of(int, annotation, ...).signature) is None


MODELS: Any = st.sampled_from([bool, int, float, str, Literal["a", "b"], Literal["b"], Literal["b", "", "a"]])
VALUES = any_json(finite=True) | st.sampled_from(["\ud800", "", None, 2.0, 10**30])
CONTENTS = VALUES.map(lambda value: {SINGLE_FIELD: value}) | st.dictionaries(
    st.sampled_from([SINGLE_FIELD, "other"]), VALUES
)


def answer_outcome(parse: Callable[[Any], Any], content: Any) -> Any:
    try:
        value = parse(content)
    except InvalidAnswer as error:
        return error.reason
    return type(value), value


@example(str, {SINGLE_FIELD: "\ud800"})
@given(MODELS, CONTENTS)
def test_an_answer_is_read_as_pydantic_reads_it(model: Any, content: Any) -> None:
    plain, by_pydantic = form_of(model), Form.from_model(model)
    assert isinstance(plain, JsonForm)
    assert answer_outcome(plain.parse, content) == answer_outcome(by_pydantic.parse, content)
    assert plain.requested_schema == by_pydantic.requested_schema
    assert list(plain.requested_schema) == list(by_pydantic.requested_schema)


@pytest.mark.parametrize("model", [Literal[1, "a"], Literal[True], list[str], str | None])
def test_forms_of_other_types_are_left_to_pydantic(model: Any) -> None:
    with suppress(DefinitionError):
        assert isinstance(form_of(model), Form)


def test_a_type_with_metadata_without_a_hash_has_a_form() -> None:
    assert isinstance(form_of(Annotated[str, []]), Form)
