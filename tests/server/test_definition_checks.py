"""Names and schemas that the APIs of models refuse."""

import pytest

from mcp_roundtrip.server.definition_checks import MAX_TOOL_NAME, exceeded_limits


def nested(key, *, within):
    """Return a schema with a property of this name below a keyword."""
    inner = {"type": "object", "properties": {key: {"type": "string"}}}
    below = {
        "properties": {"properties": {"a": inner}},
        "items": {"properties": {"a": {"type": "array", "items": inner}}},
        "anyOf": {"properties": {"a": {"anyOf": [{"type": "null"}, inner]}}},
        "$defs": {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": inner}},
        "additionalProperties": {"additionalProperties": inner},
    }
    return {"type": "object", **below[within]}


@pytest.mark.parametrize("key", ["", "a b", "filter[state]", "$top", "größe", "a\n", "x" * 65])
@pytest.mark.parametrize("within", ["properties", "items", "anyOf", "$defs", "additionalProperties"])
def test_a_property_that_models_refuse_is_named_at_every_depth(key, within):
    [problem] = exceeded_limits("t", nested(key, within=within))
    assert f"{key!r:.80}" in problem


@pytest.mark.parametrize("key", ["a", "A_b.c-1", "x" * 64, "properties", "anyOf"])
@pytest.mark.parametrize("within", ["properties", "items", "anyOf", "$defs", "additionalProperties"])
def test_other_properties_are_accepted(key, within):
    assert list(exceeded_limits("x" * MAX_TOOL_NAME, nested(key, within=within))) == []


def test_data_that_looks_like_a_schema_has_no_properties():
    data = {"properties": {"a b": 1}}
    schema = {"properties": {"a": {"default": data, "const": data, "enum": [data], "examples": [data]}}}
    assert list(exceeded_limits("t", schema)) == []


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf", "enum", "not"])
def test_a_keyword_is_refused_at_the_top_level_only(keyword):
    value = {} if keyword == "not" else [{}]
    [problem] = exceeded_limits("t", {"type": "object", keyword: value})
    assert f"models refuse {keyword} at the top level" in problem
    assert list(exceeded_limits("t", {"type": "object", "properties": {"a": {keyword: value}}})) == []


def test_a_name_leaves_space_for_the_name_of_the_server():
    assert list(exceeded_limits("x" * MAX_TOOL_NAME, {})) == []
    [problem] = exceeded_limits("x" * (MAX_TOOL_NAME + 1), {})
    assert f"use at most {MAX_TOOL_NAME}" in problem
    assert len(f"mcp__{'s' * 17}__{'x' * MAX_TOOL_NAME}") == 64, "Claude Code and Codex"


def test_a_message_names_few_of_many_properties():
    schema = {"properties": {f"{number} {'ü' * 1_000}": {} for number in range(100)}}
    [problem] = exceeded_limits("t", schema)
    assert "and 95 more" in problem
    assert len(problem) < 700
