"""Validation by a JSON Schema agrees with jsonschema, and a refusal has reasons, in bounded time."""

import re
import tracemalloc
from time import process_time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry

from mcp_roundtrip.arguments.own_input_schema import OwnSchemaArguments
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.schema.explain_invalid_json import MAX_EXPLANATION_WORK, Explanation, problem_lines
from mcp_roundtrip.schema.json_schema_validator import CompiledSchema
from mcp_roundtrip.schema.subschemas import MAX_SCHEMA_DEPTH
from mcp_roundtrip.schema.validation_cost import CHECKS, MAX_COST, SchemaCosts


def tool(arguments: dict[str, Any]) -> None: ...


def raw(**members: Any) -> OwnSchemaArguments:
    return OwnSchemaArguments.from_schema(tool, {"type": "object", **members})


def refusal(arguments: Any, **members: Any) -> str:
    with pytest.raises(ArgumentsError) as refused:
        raw(**members).validate(arguments)
    return str(refused.value)


NAMES = st.sampled_from(["a", "b", "xa"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 2, -0.0, 0.5, 10**400, "", "a", "ab", "1"])
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(NAMES, each, max_size=3), max_leaves=8
)
SCHEMAS: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.booleans()
        | st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean"]),
                "enum": st.lists(VALUES, min_size=1, max_size=3),
                "const": VALUES,
                "uniqueItems": st.booleans(),
                "pattern": st.sampled_from(["^a", "b$", "^(a+)+$"]),
                "multipleOf": st.sampled_from([1, 2, 0.5]),
                "properties": st.dictionaries(NAMES, SCHEMAS, max_size=2),
                "patternProperties": st.dictionaries(st.sampled_from(["^x", "a$"]), SCHEMAS, max_size=2),
                "additionalProperties": SCHEMAS,
                "items": SCHEMAS,
                "contains": SCHEMAS,
                "required": st.lists(NAMES, max_size=2, unique=True),
                "minItems": st.integers(0, 2),
                "maxProperties": st.integers(0, 2),
                "propertyNames": SCHEMAS,
            },
        )
        | st.fixed_dictionaries(
            {},
            optional={
                "anyOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "oneOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "allOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "not": SCHEMAS,
                "if": SCHEMAS,
                "then": SCHEMAS,
                "else": SCHEMAS,
                "$ref": st.just("#/$defs/named"),
                "dependentSchemas": st.dictionaries(NAMES, SCHEMAS, max_size=1),
                "unevaluatedProperties": SCHEMAS,
                "unevaluatedItems": SCHEMAS,
            },
        )
    )
)
DIALECTS = [jsonschema.Draft202012Validator, jsonschema.Draft7Validator, jsonschema.Draft4Validator]


@given(st.sampled_from(DIALECTS), SCHEMAS, VALUES)
def test_validation_agrees_with_jsonschema_and_each_refusal_has_a_reason(
    dialect: Any, schema: Any, value: Any
) -> None:
    named = {"named": {"enum": [1, "a", [1]]}}
    whole = {"$schema": dialect.META_SCHEMA["$schema"], "allOf": [schema], "$defs": named}
    try:
        dialect.check_schema(whole)
        expected = dialect(whole, registry=Registry()).is_valid(value)
    except OverflowError:  # jsonschema divides floats
        return
    except jsonschema.SchemaError as error:  # a draft in which a boolean is no schema, or items are others
        if error.validator == "uniqueItems":  # of an enum: it changes no verdict
            return
        with pytest.raises(DefinitionError):
            CompiledSchema.compile(whole)
        return
    validator = CompiledSchema.compile(whole)
    assert validator.is_valid(value) is expected
    assert expected or list(Explanation(validator).problems(value))


def test_numbers_beyond_the_range_of_floats_can_be_multiples() -> None:
    arguments = raw(properties={"a": {"multipleOf": 0.5}})
    assert arguments.validate({"a": 10**400})
    assert refusal({"a": 10**400 + 1}, properties={"a": {"multipleOf": 2.5}})


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"required": ["b"]}, {"required": ["b", "c"]}]},
        {"dependentRequired": {"a": ["b"]}},
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"dependencies": {"a": ["b"]}, "$schema": "http://json-schema.org/draft-07/schema#"},
        {"dependencies": {"a": {"required": ["b"]}}, "$schema": "http://json-schema.org/draft-07/schema#"},
    ],
)
def test_a_member_that_others_require_is_named(schema: dict[str, Any]) -> None:
    assert refusal({"a": 1}, **schema) == "arguments.b: Field required"


def test_a_limit_that_draft_4_excludes_is_named() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    validator = CompiledSchema.compile(schema)
    [(place, reason)] = Explanation(validator).problems(1)
    assert (place, "more than 1" in reason) == ((), True)


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_keywords_that_a_reference_hides_in_early_drafts_are_no_reasons(draft: str) -> None:
    size = {"$ref": "#/definitions/size", "minLength": 9}
    members = {"definitions": {"size": {"type": "integer"}}, "properties": {"size": size}}
    message = refusal({"size": "a"}, **members, **{"$schema": f"http://json-schema.org/{draft}/schema#"})
    assert re.fullmatch("arguments.size: .* integer", message)


def test_the_reasons_copy_no_long_text() -> None:
    text = "a" * 1_000_000
    schema = {"anyOf": [{"type": "string", "maxLength": 1, "const": "b", "format": "date"}] * 20}
    validator = CompiledSchema.compile(schema)
    tracemalloc.start()
    try:
        assert list(Explanation(validator).problems(text))
        assert tracemalloc.get_traced_memory()[1] < 3 * len(text)
    finally:
        tracemalloc.stop()


def test_errors_that_would_copy_more_than_40_mb_are_not_collected() -> None:
    validator = CompiledSchema.compile({"required": [str(number) for number in range(39)]})
    assert len(validator.errors("#", {"text": "\N{GRINNING FACE}" * 200_000})) == 39
    assert len(validator.errors("#", {"text": "\N{GRINNING FACE}" * 300_000})) == 1


@pytest.mark.parametrize("value", [["a" * 2_000], [1e-9] * 680, [[]] * 1_300, [2**64 + n for n in range(20)]])
def test_a_short_input_is_checked_by_the_costliest_schema(value: Any) -> None:
    costly = [
        *({"uniqueItems": True} for _ in range(10)),
        *({"items": {"multipleOf": 3}} for _ in range(31)),
        *({"items": {"pattern": pattern}} for pattern in ("(a{1,90}){1,20}b", "(a{1,90}){1,20}c")),
    ]
    schema = {"anyOf": costly}
    assert 3_300 < SchemaCosts(schema).whole[CHECKS] <= MAX_COST
    assert SchemaCosts(schema).exceeded_bound(value, len(compact_json(value))) is None


@pytest.mark.parametrize("number", [1e300, 10**400])
def test_long_numbers_that_a_costly_schema_checks_for_seconds_are_refused(number: Any) -> None:
    checks = [{"multipleOf": 3, "minimum": least} for least in range(35)]
    costs = SchemaCosts({"items": {"allOf": checks}})
    assert costs.whole[CHECKS] <= MAX_COST
    assert costs.exceeded_bound([1] * 9_000, 100_000) is None
    assert costs.exceeded_bound([number] * 9_000, 100_000) is not None


@pytest.mark.parametrize("known", [{}, {"properties": {"b": {}}}])
def test_an_unknown_member_is_an_argument_only_of_a_call(known: dict[str, Any]) -> None:
    validator = CompiledSchema.compile({**known, "additionalProperties": False})
    assert problem_lines(validator, {"a": 1}, "arguments") == ["arguments.a: unknown argument"]
    assert problem_lines(validator, {"a": 1}, "result") == ["result.a: unknown member"]
    outer = CompiledSchema.compile({"properties": {"b": validator.schema}})
    assert problem_lines(outer, {"b": {"a": 1}}, "arguments") == ["arguments.b.a: unknown member"]


@pytest.mark.parametrize("value", [3, None, "abc", ["a"]])
def test_a_member_with_the_name_of_a_keyword_is_refused_itself(value: Any) -> None:
    validator = CompiledSchema.compile({"properties": {"additionalProperties": False}})
    [line] = problem_lines(validator, {"additionalProperties": value}, "arguments")
    assert re.fullmatch("arguments.additionalProperties: .*not allowed", line)


def deep(levels: int, name: str = "child") -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {name: value}
    return value


BRANCH = {"properties": {"child": {"$ref": "#/$defs/node"}}}
RECURSIVE = {
    "anyOf": [BRANCH, {**BRANCH, "required": ["b"]}],
    "allOf": [{"unevaluatedProperties": {"$ref": "#/$defs/node"}}] * 2,
    "unevaluatedProperties": False,
}


def test_an_explanation_takes_bounded_work() -> None:
    validator = CompiledSchema.compile({"$ref": "#/$defs/node", "$defs": {"node": RECURSIVE}})
    explanation = Explanation(validator)
    assert list(explanation.problems({"other": deep(15)}))
    assert explanation.work_left >= MAX_EXPLANATION_WORK // 10


def test_a_reference_into_alternatives_has_the_reasons_of_its_target() -> None:
    size = {"type": "object", "required": ["b"]}
    schema = {
        "properties": {"a": {"anyOf": [size, {"type": "null"}]}, "c": {"$ref": "#/properties/a/anyOf/0"}}
    }
    assert refusal({"a": {}, "c": {}}, **schema).splitlines() == [
        "arguments.a.b: Field required",
        "arguments.c.b: Field required",
    ]


@pytest.mark.parametrize(
    ("pet", "problem"),
    [
        ({"kind": "bird", "lives": 9}, 'arguments.pet.kind: .* "cat" or "dog" or "hound"'),
        ({"kind": "cat"}, "arguments.pet.lives: Field required"),
        ({"lives": 9}, "arguments.pet.kind: Field required"),
    ],
)
def test_a_discriminator_of_no_alternative_has_those_of_all(pet: Any, problem: str) -> None:
    cat = {
        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
        "required": ["kind", "lives"],
    }
    dog = {"properties": {"kind": {"enum": ["dog", "hound"]}, "barks": True}, "required": ["kind", "barks"]}
    assert re.fullmatch(problem, refusal({"pet": pet}, properties={"pet": {"oneOf": [cat, dog]}}))


def test_hundreds_of_alternatives_of_each_item_take_no_second() -> None:
    choices = {"anyOf": [{"const": str(number)} for number in range(700)]}
    before = process_time()
    assert refusal({"a": ["a" * 1_000] * 25}, properties={"a": {"items": choices}})
    assert process_time() - before < 1


def test_names_that_look_like_numbers_or_are_empty_have_places() -> None:
    schema = {"additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    assert re.fullmatch("arguments.01: .* integer or null", refusal({"01": "a"}, **schema))
    assert refusal({"": {"a": 1}}, **schema)
    numbers = {"m": {"additionalProperties": {"type": "integer"}}}
    assert "arguments.m.7: " in refusal({"m": {"9" * 5_000: 1, "7": "a"}}, properties=numbers)


@pytest.mark.parametrize(
    ("keywords", "rule"),
    [
        ({"not": {"anyOf": [{"required": ["a"]}, False]}}, 'not: {"anyOf": [{"required": ["a"]}, false]}'),
        ({"not": {"$ref": "#/$defs/all"}}, 'not: {"$ref": "#/$defs/all"}'),
        ({"properties": {"a": {"contains": {}, "minContains": 2}}}, "minContains: 2"),
        ({"properties": {"b": {}}, "unevaluatedProperties": False}, "or send less at once"),
    ],
)
def test_what_is_not_allowed_is_quoted_as_the_author_wrote_it(keywords: dict[str, Any], rule: str) -> None:
    assert refusal({"a": [1]}, **{"$defs": {"all": {}}, **keywords}).endswith(rule)


def test_a_long_text_is_no_regular_expression() -> None:
    schema = {"properties": {"a": {"format": "regex"}}}
    assert raw(**schema).validate({"a": "a+"})
    assert re.fullmatch('arguments.a: .* "regex"', refusal({"a": "("}, **schema))
    assert "10000 characters" in refusal({"a": "(" * 4_000_000}, **schema)


@pytest.mark.parametrize(
    "members",
    [
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"properties": {"a": {"items": [{"pattern": r"(a)\1"}]}}},
        {"patternProperties": {"^(?!x)": True}},
        {"$defs": {"a": {"not": {"pattern": "(?!a)"}}}},
    ],
)
def test_a_pattern_that_cannot_run_in_linear_time_is_refused(members: Any) -> None:
    with pytest.raises(DefinitionError, match="input_schema: the pattern"):
        raw(**members)


def test_the_deepest_alternatives_that_a_schema_may_have_are_explained() -> None:
    deepest: Any = {"type": "integer"}
    for _ in range((MAX_SCHEMA_DEPTH - 4) // 2):
        deepest = {"anyOf": [deepest, {"type": "boolean"}]}
    assert refusal({"a": "x"}, properties={"a": deepest})
    with pytest.raises(DefinitionError, match="levels"):
        raw(properties={"a": {"anyOf": [{"anyOf": [deepest]}]}})


def test_an_address_with_a_name_is_no_email() -> None:
    assert refusal({"a": "Name <a@b.example>"}, properties={"a": {"format": "email"}})
    assert raw(properties={"a": {"format": "email"}}).validate({"a": "a@b.example"})


@pytest.mark.parametrize("name", ["base64", "base64url"])
def test_the_formats_of_pydantic_for_base64_are_asserted(name: str) -> None:
    schema = {"format": name}
    assert raw(properties={"a": schema}).validate({"a": "e30="})
    for beside in ({}, {"pattern": "^%"}):
        refused = refusal({"a": "%%"}, properties={"a": {**schema, **beside}})
        assert re.fullmatch('arguments.a: .* "base64"', refused)
