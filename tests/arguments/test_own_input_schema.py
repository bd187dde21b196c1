"""Tools with their own JSON Schema."""

import math
import re

import pytest
from mcp_types import Tool

from mcp_roundtrip import Context
from mcp_roundtrip.arguments.own_input_schema import OwnSchemaArguments
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError


def tool(ctx: Context, arguments: dict):
    """Do it."""


SCHEMA = {
    "type": "object",
    "properties": {
        "size": {"$ref": "#/$defs/size"},
        "color": {"enum": ["red", "blue"]},
        "nested": {"type": "object", "required": ["a", "b"]},
    },
    "patternProperties": {"^x-": {"type": "string"}, "^never$": False},
    "required": ["size"],
    "additionalProperties": False,
    "$defs": {"size": {"type": "integer", "minimum": 1, "maximum": 16}},
    "x-vendor": [1, None],
}
SECRET = "hunter2-hunter2"


def raw(schema, function=tool):
    return OwnSchemaArguments.from_schema(function, schema)


def refusal(schema, arguments):
    with pytest.raises(ArgumentsError) as caught:
        raw(schema).validate(arguments)
    return str(caught.value).splitlines()


# Registration


def test_the_schema_is_returned_unchanged():
    assert raw(SCHEMA).json_schema() == SCHEMA
    assert list(raw(SCHEMA).json_schema()) == list(SCHEMA)
    Tool(name="t", input_schema=raw(SCHEMA).json_schema())


def test_docstring_and_context_are_read_as_with_a_typed_signature():
    found = raw(SCHEMA)
    assert (found.signature.context_parameter, found.signature.prose) == ("ctx", "Do it.")


def test_the_parameter_may_have_any_name_and_no_annotation():
    def other(anything): ...

    assert raw(SCHEMA, other).validate({"size": 1}) == {"anything": {"size": 1}}


@pytest.mark.parametrize(
    "reference",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "other.json#/$defs/a"},
        {"$ref": ""},
        {"$ref": 1},
        {"$dynamicRef": "https://example.com/schema.json#node"},
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        lambda ref: {"properties": {"a": ref}},
        lambda ref: {"$defs": {"unused": {"anyOf": [True, ref]}}},
        lambda ref: {"x-unknown": {"deep": [[ref]]}},
        lambda ref: {"dependentSchemas": {"const": {"not": ref}}},
        lambda ref: ref,
    ],
)
def test_a_remote_reference_is_refused_at_any_place(reference, place):
    with pytest.raises(DefinitionError, match=r"leaves the document"):
        raw({"type": "object", **place(reference)})


@pytest.mark.parametrize(("member", "remedy"), [(True, "{}"), (False, "{'not': {}}")])
def test_a_boolean_property_which_makes_clients_lose_every_tool_is_refused(member, remedy):
    with pytest.raises(DefinitionError, match=f"'a' of .* {member}; .* {re.escape(remedy)}$"):
        raw({"type": "object", "properties": {"a": member, "b": {"items": True}}})


def test_an_empty_enum_which_makes_clients_lose_every_tool_is_refused():
    with pytest.raises(DefinitionError, match="no values"):
        raw({"type": "object", "properties": {"a": {"items": {"enum": []}}}})


@pytest.mark.parametrize("number", [10**400, math.inf])
def test_a_number_that_javascript_reads_as_infinity_is_refused(number):
    with pytest.raises(DefinitionError, match=r"write .* numbers below"):
        raw({"type": "object", "properties": {"a": {"maximum": number}}})


@pytest.mark.parametrize("name", [1, "\udc80"])
def test_a_name_that_json_does_not_have_is_refused(name):
    with pytest.raises(DefinitionError, match=r"^tool: input_schema: .*; write JSON"):
        raw({"type": "object", "properties": {name: {}}}).validate({})


def test_a_value_that_only_looks_like_a_reference_is_accepted():
    schema = {
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "b": {"const": {"$ref": "https://example.com"}}},
    }
    assert raw(schema).validate({"$ref": "x", "b": {"$ref": "https://example.com"}})


def test_a_schema_that_contains_itself_is_refused():
    circle, lists = [], []
    circle.append({"allOf": circle})
    lists.append(lists)
    for each in (circle, lists):
        with pytest.raises(DefinitionError, match="deeper"):
            raw({"type": "object", "allOf": each})


def doubling(steps, part=lambda schema: schema, *, is_cycle=False):
    definitions = {f"a{n}": {"anyOf": [part({"$ref": f"#/$defs/a{n + 1}"})] * 2} for n in range(steps)}
    definitions[f"a{steps}"] = {"$ref": "#/$defs/a0"} if is_cycle else {}
    return {"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": definitions}


DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(30),
        doubling(30, lambda schema: {"properties": {"a": schema}}),
        doubling(30, lambda schema: {"items": schema}),
        doubling(30, lambda schema: {"additionalProperties": schema}, is_cycle=True),
        {"type": "object", "dependentRequired": {key: [*map(str, range(600))] for key in "abcdefgh"}},
        {**DRAFT_7, "type": "object", "dependencies": {key: [*map(str, range(600))] for key in "abcdefgh"}},
        {
            "type": "object",
            "dependentSchemas": {key: {"required": [*map(str, range(1_400))]} for key in "abc"},
        },
        {"type": "object", "propertyNames": {"anyOf": [{"format": "uri"}] * 90}},
        {"type": "object", "patternProperties": {f"^{n}$": {"format": "uri"} for n in range(90)}},
        {"type": "object", "properties": {"a": {"contains": {"enum": [[n] for n in range(300)]}}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"format": "email"}] * 90}}},
        {"type": "object", "properties": {"a": {"items": {"enum": [{"a": n} for n in range(300)]}}}},
    ],
)
def test_a_schema_that_compares_one_value_too_often_is_refused(schema):
    with pytest.raises(DefinitionError, match="one value"):
        raw(schema)


def test_references_to_themselves_and_large_enumerations_of_texts_are_accepted():
    tree = {"anyOf": [{"type": "null"}, {"properties": {"child": {"$ref": "#/$defs/tree"}}}]}
    names = {"enum": [f"name {n}" for n in range(9_000)]}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}, "b": names}}
    assert raw({**schema, "$defs": {"tree": tree}}).validate({"b": "name 8999"})
    assert raw(doubling(5)).json_schema()


def test_anchors_and_unevaluated_members_count():
    dynamic = {"anyOf": [{"items": {"$dynamicRef": "#b"}}] * 2}
    for keyword in ("$anchor", "$dynamicAnchor"):
        last = {"anyOf": [True] * 3_000, keyword: "b"}
        with pytest.raises(DefinitionError, match="one value"):
            raw({"type": "object", "properties": {"a": dynamic, "b": last}})
    schema: dict = {"type": "object"}
    for _ in range(20):
        schema = {"type": "object", "allOf": [schema], "unevaluatedProperties": False}
    with pytest.raises(DefinitionError, match="one value"):
        raw(schema)


def test_many_numbers_that_take_long_to_compare_are_refused_and_common_ones_never():
    rule = {"minimum": 0, "maximum": 10, "multipleOf": 1, "enum": [*range(90)]}
    schema = {"type": "object", "properties": {"a": {"items": rule}}}
    assert raw(schema).validate({"a": [1] * 9_000})
    assert raw(schema).validate({"a": [1.0] * 9_000})
    for numbers in ([10**4_000] * 2_000, [10**1_000] * 8_000):
        assert "to be checked" in refusal(schema, {"a": numbers})[0]


def test_an_enum_of_many_integers_bounds_the_numbers_that_are_compared_with_each_of_them():
    schema = {"type": "object", "properties": {"a": {"items": {"type": "integer", "enum": [*range(9_000)]}}}}
    assert raw(schema).validate({"a": [8_999] * 9_000})
    assert raw(schema).validate({"a": [8_999.0] * 9_000})
    for number in (1e300, 2**64):
        assert "to be checked" in refusal(schema, {"a": [number] * 9_000})[0]


@pytest.mark.parametrize("items", [{"uniqueItems": True}, {"items": {"uniqueItems": True}}])
def test_unique_integers_are_bounded_if_each_is_compared_with_each_other(items):
    schema = {"type": "object", "properties": {"a": items}}
    wrap = (lambda values: [values]) if "items" in items else list
    assert raw(schema).validate({"a": wrap([2**62 + n for n in range(9_000)])})
    assert raw(schema).validate({"a": wrap([2**64 + n for n in range(300)])})
    for values in ([2**64 + n for n in range(2_000)], [10**3_000 + n for n in range(200)]):
        assert "to be checked" in refusal(schema, {"a": wrap(values)})[0]


def test_integers_of_64_bits_may_be_many_if_they_are_not_compared_with_each_other():
    integer = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
    schema = {"type": "object", "properties": {"a": {"items": integer}}}
    assert raw(schema).validate({"a": [2**64 - 1] * 9_000})


def test_a_pattern_that_a_schema_matches_several_times_counts_each_time():
    pattern = {"pattern": r"\w{1,100}-"}
    schema = {"type": "object", "$defs": {"p": pattern}}
    several = {**schema, "properties": {"a": {"anyOf": [*[{"$ref": "#/$defs/p"}] * 20, True]}}}
    assert raw({**schema, "properties": {"a": pattern}}).validate({"a": "a" * 20_000 + "-"})
    assert "to be checked" in refusal(several, {"a": "a" * 20_000})[0]
    assert raw(several).validate({"a": "a" * 2_000})


def test_the_declared_dialect_is_applied():
    # Draft 7 ignores keywords beside $ref, 2020-12 does not.
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/a", "maximum": 1}},
        "definitions": {"a": {"type": "integer"}},
    }
    assert raw({"$schema": "http://json-schema.org/draft-07/schema#", **schema}).validate({"a": 5})
    [line] = refusal(schema, {"a": 5})
    assert re.fullmatch("arguments.a: .* 1 or less", line)


# Validation


def test_every_error_is_one_line_with_its_place():
    arguments = {"size": 17, "color": "green", "nested": {}, "never": 1, "x-a": 2, "y": 1, "z": 2}
    reasons = {
        "arguments.color": '"red" or "blue"',
        "arguments.nested.a": "required",
        "arguments.nested.b": "required",
        "arguments.never": "not allowed",
        "arguments.size": "16 or less",
        "arguments.x-a": "a string",
        "arguments.y": "unknown argument",
        "arguments.z": "unknown argument",
    }
    for line, (place, reason) in zip(sorted(refusal(SCHEMA, arguments)), reasons.items(), strict=True):
        assert re.fullmatch(f"{place}: .*{reason}", line)


def test_a_refusal_never_quotes_arguments():
    keywords = [
        {"type": "integer"},
        {"enum": ["a"]},
        {"const": "a"},
        {"maxLength": 1},
        {"pattern": "^a$"},
        {"not": {}},
        {"oneOf": [{"type": "integer"}, {"type": "null"}]},
    ]
    schema = {"type": "object", "properties": {f"p{n}": k for n, k in enumerate(keywords)}}
    lines = refusal(schema, dict.fromkeys(schema["properties"], SECRET))
    assert len(lines) == len(keywords)
    assert "hunter" not in "\n".join(lines)


def test_a_long_rule_is_cut():
    schema = {"type": "object", "properties": {"a": {"enum": [str(n) for n in range(1000)]}}}
    [line] = refusal(schema, {"a": "x"})
    assert line.startswith("arguments.a: ")
    assert '"0" or "1" or ' in line
    assert len(line) < 200


def test_a_remote_reference_hidden_in_a_value_is_never_fetched():
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/properties/b/const"},
            "b": {"const": {"$ref": "http://127.0.0.1:9/x"}},
        },
    }
    with pytest.raises(DefinitionError, match="leads nowhere"):
        raw(schema).validate({"a": 1})


def test_a_reference_that_leads_back_to_itself_demands_nothing():
    found = raw({"type": "object", "$ref": "#", "required": ["a"]})
    assert found.validate({"a": 1})
    own = {**found.json_schema(), "anyOf": [{"$ref": "#"}, {"type": "null"}]}
    assert refusal(own, {}) == ["arguments.a: Field required"]


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"^\d+$", "\u0661\u0662"), (r"^\w+$", "\u00e4"), ("^.$", "\r")]
)
def test_a_class_of_a_pattern_has_the_characters_that_it_has_in_javascript(pattern, text):
    for schema in ({"pattern": pattern}, {"propertyNames": {"pattern": pattern}}):
        value = text if "pattern" in schema else {text: 1}
        assert refusal({"type": "object", "properties": {"a": schema}}, {"a": value})
    by_name = {"patternProperties": {pattern: {}}, "additionalProperties": False}
    assert refusal({"type": "object", **by_name}, {text: 1})


def test_null_counts_as_left_out_where_the_schema_has_a_default_and_refuses_null():
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"$ref": "#/$defs/unit", "default": "c"},
            "days": {"type": ["integer", "null"], "default": 1},
            "note": {"type": "string"},
        },
        "required": ["city"],
        "$defs": {"unit": {"enum": ["c", "f"]}},
    }
    found = raw(schema)
    assert found.validate({"city": "a", "unit": None, "days": None}) == {
        "arguments": {"city": "a", "days": None}
    }
    assert refusal(schema, {"city": "a", "note": None})
    assert refusal(schema, {"city": None})
