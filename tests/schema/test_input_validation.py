"""A value is accepted if and only if the advertised JSON Schema accepts it."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from inspect import isclass
from pathlib import Path
from sys import hash_info
from typing import Annotated, Any, TypeVar
from uuid import UUID

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    Field,
    FiniteFloat,
    Json,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.arguments.typed_arguments import StringArguments
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError, InvalidAnswer
from mcp_roundtrip.schema.json_schema_generator import NUMBER_PATTERN
from mcp_roundtrip.schema.json_schema_validator import CompiledSchema
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from support.costly_types import alike
from support.json_values import values, verdicts
from support.servers import arguments_of
from support.type_samples import FORMS, ZOO, Level

ROOT = Path(__file__).parents[2]

law = settings(
    max_examples=10,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def is_accepted(read: Callable[[Any], Any], value: Any) -> bool:
    try:
        read(value)
    except (ArgumentsError, InvalidAnswer):
        return False
    return True


def check(
    schema: Mapping[str, Any],
    *readers: Callable[[Any], Any],
    as_judged: Callable[[dict[str, Any]], dict[str, Any]] = lambda value: value,
) -> None:
    """Generate values for `schema` and compare the verdicts of `readers` and of the schema."""
    judge = verdicts(schema)

    @law
    @given(values(schema))
    def agree(value: Any) -> None:
        # Other values are refused before. Names of one key are an exception.
        if isinstance(value, dict) and not has_one_key_twice(value):
            judged = judge(as_judged(value))
            for read in readers:
                assert is_accepted(read, value) in judged

    agree()


def has_one_key_twice(value: Any) -> bool:
    """Return whether names of an object are one number."""
    if not isinstance(value, dict):
        return False
    names = [name for name in value if re.fullmatch(NUMBER_PATTERN, name)]
    return len({*map(float, names)}) < len(names) or any(map(has_one_key_twice, value.values()))


def check_arguments(schema: Mapping[str, Any], read: Callable[[Any], Any]) -> None:
    """Do the same for arguments: null and "" count as left out for optional ones, unless they are values."""

    def without_left_out(value: dict[str, Any]) -> dict[str, Any]:
        optional = schema.get("properties", {}).keys() - set(schema.get("required", ()))
        if "$schema" in schema:  # the input_schema of an example, which declares no `default`
            optional = set()
        alone = jsonschema.Draft202012Validator({**schema, "required": []})
        return {
            name: member
            for name, member in value.items()
            if member not in (None, "") or name not in optional or alone.is_valid({name: member})
        }

    check(schema, read, as_judged=without_left_out)


def check_form(form: Form) -> None:
    """Do the same for the answers of a form, which may be null for fields whose type includes None."""
    properties = {
        name: {"anyOf": [field, {"type": "null"}]} if name in form.reader.nullable else field
        for name, field in form.requested_schema["properties"].items()
    }
    check_arguments({**form.requested_schema, "properties": properties}, form.parse)


# The rule


@pytest.mark.parametrize("name", ZOO)
def test_arguments_are_accepted_exactly_as_by_the_schema_which_its_validation_agrees_with(name: str) -> None:
    found = arguments_of(ZOO[name])
    schema = found.json_schema()
    validation = CompiledSchema.compile(schema)

    def read(value: Any) -> None:
        if not validation.is_valid(value):
            raise ArgumentsError(str(value))

    check(schema, found.validate, read)


@pytest.mark.parametrize("name", FORMS)
def test_answers_are_accepted_exactly_as_by_the_form(name: str) -> None:
    check_form(Form.from_model(FORMS[name]))


CHECKS_MORE = {"DuplicateOf"}
"""A form of the examples that takes integers: `multiple_of` is none of the keywords that forms have."""


def examples() -> Iterator[Any]:
    """Return the tools of the examples and of the conformance server, and the types of their modules."""
    for folder in ("functions", "tests"):
        for server in load_function_servers(ROOT / folder).values():
            for tool in server.tools.values():
                schema, validate = tool.parameters.json_schema(), tool.parameters.validate
                yield pytest.param(partial(check_arguments, schema, validate), id=tool.name)
            for name, form in forms(next(iter(server.tools.values())).function.__globals__):
                yield pytest.param(partial(check_form, form), id=name)


def forms(members: Mapping[str, Any]) -> Iterator[tuple[str, Form]]:
    for name, model in members.items():
        if isclass(model) and model.__module__ == members["__name__"] and name not in CHECKS_MORE:
            try:
                yield name, Form.from_model(model)
            except DefinitionError:
                continue


@pytest.mark.parametrize("compare", list(examples()))
def test_the_examples_accept_exactly_what_they_advertise(compare: Callable[[], None]) -> None:
    compare()


# The exceptions


def refuse(value: int) -> int:
    raise ValueError("not this one")


class Window(BaseModel):
    """A form with a constraint that its schema cannot express."""

    code: str = Field("a", pattern="^a$")
    note: str | None = None


Tree = TypeAliasType("Tree", "dict[float, Tree]")
UPPER_CASE = "123E4567-E89B-42D3-A456-426614174000"

EXCEPTIONS: dict[str, list[tuple[Any, Any]]] = {
    "types": [
        (complex, "a"),
        (ByteSize, "3 elephants"),
        (Annotated[date, Field(ge=date(2026, 1, 1))], "2025-12-31"),
        (Annotated[Decimal, Field(max_digits=3)], 1234),
        (Annotated[Decimal, Field(ge=1)], "0"),
        (Annotated[bytes, Field(max_length=1)], "é"),
        (Json[list[int]], "["),
        (FiniteFloat, 10**400),
        (set[Any], [[1]]),
        (Annotated[int, WithJsonSchema({"type": "string"})], "a"),
    ],
    "validators": [
        (Annotated[int, AfterValidator(refuse)], 1),
        (Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)], " "),
    ],
    "limits": [(Annotated[str, Field(pattern="[a-z]{1,128}")], "a" * 400_000)],
    "work": [(list[Annotated[int, Field(ge=0, multiple_of=1)]], [10**900] * 6_000)],
    "alternatives": [(list[alike(50)], [{"a49": 1}] * 2_500)],
    "collisions": [(set[int], [number * hash_info.modulus for number in range(1_000)])],
    "keys": [
        (dict[float, str], {"1": "a", "1.0": "b"}),
        (list[OrderedDict[Decimal, str]], [{"1": "a", "1.00": "b"}]),
        (Tree, {"1": {}, "1e0": {}}),
        (dict[UUID, int], dict.fromkeys(["123e4567-e89b-42d3-a456-426614174000", UPPER_CASE], 1)),
        (dict[Annotated[str, StringConstraints(strip_whitespace=True)], int], {"a": 1, " a": 2}),
    ],
    "nested values": [(Json[list[int]], f"[{'0,' * 20_000}0]")],
    "depth": [(Any, "\ud800")],
}
"""Exception -> types, and a value that the schema accepts and the reader refuses."""

OF_FORMS = {"forms": {"code": "b"}}

ELSEWHERE = {"headers"}
"""Exceptions tested in other modules: tests/protocol/test_parameter_headers.py."""

UNLISTED = {"collisions"}
"""Values with one Python hash, which only an attacker sends."""


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_each_exception_is_a_disagreement_with_the_schema(name: str) -> None:
    for annotation, value in EXCEPTIONS[name]:
        found = arguments_of(annotation)
        assert CompiledSchema.compile(found.json_schema()).is_valid({"x": value})
        assert not is_accepted(found.validate, {"x": value})


def test_the_exception_of_forms_is_a_disagreement_with_the_schema() -> None:
    form = Form.from_model(Window)
    assert CompiledSchema.compile(form.requested_schema).is_valid(OF_FORMS["forms"])
    assert not is_accepted(form.parse, OF_FORMS["forms"])
    assert is_accepted(form.parse, {"note": None})  # null, which a form cannot describe


def test_names_that_are_one_key_are_refused_with_their_place() -> None:
    read = arguments_of(dict[str, dict[float, str]] | None).validate
    assert read({"x": {"a": {"1.0": "a", "2": "b"}}}) == {"x": {"a": {1.0: "a", 2.0: "b"}}}
    with pytest.raises(ArgumentsError) as caught:
        read({"x": {"a": {"1.0": "a", "1": "b"}}})
    assert str(caught.value).startswith("arguments.x.a: ")
    assert "; write " in str(caught.value)


def test_the_documentation_lists_these_exceptions_and_no_others() -> None:
    page = (ROOT / "docs/reference/accepted-values.md").read_text("utf-8")
    table = page.partition("## Exceptions")[2]
    listed = re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)
    assert sorted(listed) == sorted({*EXCEPTIONS, *OF_FORMS, *ELSEWHERE} - UNLISTED)


# Arguments of prompts


def test_prompts_read_the_type_that_a_generic_alias_names() -> None:
    def prompt(count): ...

    item = TypeVar("item")
    prompt.__annotations__["count"] = TypeAliasType("Maybe", item | None, type_params=(item,))[int]
    assert StringArguments.from_function(prompt).validate({"count": "3"}) == {"count": 3}


def test_null_counts_as_left_out_for_an_argument_of_a_prompt_with_a_default() -> None:
    def prompt(name: str, count: int = 3, when: date | None = None): ...

    found = StringArguments.from_function(prompt)
    assert found.validate({"name": "a", "count": None, "when": None}) == found.validate({"name": "a"})
    with pytest.raises(ArgumentsError):
        found.validate({"name": None})


# Refusals


class Shelf(BaseModel):
    tags: set[str]
    level: Level
    pair: tuple[int, str]
    when: date


def test_a_refusal_names_each_member_and_the_accepted_values() -> None:
    value = {"tags": ["a", "a"], "level": True, "pair": [1], "when": "soon", "more": 1}
    with pytest.raises(ArgumentsError) as caught:
        arguments_of(Shelf | None).validate({"x": value, "y": 1})
    problems = ["x.tags: .*twice", "x.level: .*1 or 2", "x.pair: .*2 .*more", "x.when: .*2026-07-28", "y: .*"]
    assert re.fullmatch("\n".join(f"arguments.{each}" for each in problems), str(caught.value))


def test_validators_are_not_called_with_values_that_the_schema_refuses() -> None:
    called = []

    def record(value: Any) -> Any:
        called.append(value)
        return value

    class Stay(BaseModel):
        nights: Annotated[int, AfterValidator(record)]
        until: date

    read = arguments_of(Annotated[str | Stay, BeforeValidator(record)]).validate
    assert read({"x": "a"}) == {"x": "a"}
    called.clear()
    for refused in (1, {"nights": True, "until": "2026-07-28"}, {"nights": 1, "until": "soon"}):
        with pytest.raises(ArgumentsError):
            read({"x": refused})
    assert called == []


def test_a_validator_that_refuses_runs_once() -> None:
    called = list[int]()

    def refuse(value: int) -> int:
        called.append(value)
        raise ValueError("too many")

    with pytest.raises(ArgumentsError, match="too many"):
        arguments_of(Annotated[int, AfterValidator(refuse)]).validate({"x": 1})
    assert called == [1]


def test_a_type_with_a_custom_core_schema_is_read() -> None:
    class Pair:
        def __init__(self, x: int) -> None:
            self.x = x

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            x = core_schema.arguments_parameter("x", core_schema.int_schema(), mode="positional_or_keyword")
            return core_schema.call_schema(core_schema.arguments_schema([x]), cls)

    assert arguments_of(Pair).validate({"x": {"x": 1}})["x"].x == 1
