"""Rules for expressions that no emulator enforces. tests/tasks checks what the expressions do."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.dynamodb import build_expressions
from mcp_roundtrip.tasks.store import AllOf, AnyOf, Change, Equals

CONDITIONS = st.recursive(
    st.builds(Equals, st.sampled_from("ab"), st.integers(0, 1)),
    lambda inner: st.builds(
        lambda kind, parts: kind(tuple(parts)),
        st.sampled_from([AllOf, AnyOf]),
        st.lists(inner, min_size=1, max_size=3),
    ),
)


@given(CONDITIONS)
def test_no_parentheses_are_redundant(condition):
    expression = build_expressions(Change(condition))["ConditionExpression"]
    opened: list[int] = []
    pairs = set()
    for at, character in enumerate(expression):
        if character == "(":
            opened.append(at)
        elif character == ")":
            pairs.add((opened.pop(), at))
    assert not any((start + 1, end - 1) in pairs for start, end in pairs)


@given(CONDITIONS, st.dictionaries(st.text(min_size=1), st.integers()), st.sets(st.sampled_from("xyz")))
def test_every_placeholder_is_defined_and_used(condition, values, removed):
    rendered = build_expressions(Change(condition, set=values, remove=tuple(removed - values.keys())))
    text = f"{rendered['ConditionExpression']} {rendered.get('UpdateExpression', '')}"
    assert set(re.findall(r"#\d+", text)) == rendered["ExpressionAttributeNames"].keys()
    assert set(re.findall(r":\d+", text)) == rendered["ExpressionAttributeValues"].keys()


@pytest.mark.parametrize("name", ["status", "é", "a b", "a.b", "#0", ":0"])
def test_expressions_contain_only_placeholders_for_names_and_values(name):
    rendered = build_expressions(Change(Equals(name, name), set={name: name}))
    assert re.fullmatch(r"[#:\d =]+", rendered["ConditionExpression"])
    assert re.fullmatch(r"SET [#:\d =]+", rendered["UpdateExpression"])
