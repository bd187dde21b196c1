"""What the templates of the other tests do not contain."""

import pytest

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, resolve

NAMES = TemplateNames(
    values={"Names": ["a", "b"]},
    attributes={},
    mappings={"Sizes": {"prod": {"memory": 1024}}},
    conditions={"IsProd": {"Fn::Equals": ["prod", "prod"]}, "Circular": {"Condition": "Circular"}},
)


@pytest.mark.parametrize(
    "node",
    [
        {"Fn::FindInMap": ["Sizes", "test", "memory"]},
        {"Fn::Join": [",", "text"]},
        {"Fn::Select": [5, ["a"]]},
        {"Fn::Select": [-1, ["a"]]},
        {"Fn::Split": ["", "a"]},
        {"Ref": ["Names"]},
        {"Fn::Sub": "${Names}"},
        {"Fn::GetAZs": ""},
        {"Fn::If": ["NoSuchCondition", 1, 2]},
        {"Fn::If": ["IsProd"]},
        {"Fn::If": [["IsProd"], 1, 2]},
        {"Fn::If": ["Circular", 1, 2]},
    ],
    ids=str,
)
def test_a_value_that_cannot_be_known_is_refused(node):
    with pytest.raises(Unresolvable):
        resolve(node, NAMES)


NO_VALUE = {"Ref": "AWS::NoValue"}


def test_no_value_removes_a_member_and_an_item():
    assert resolve({"a": NO_VALUE, "b": [1, NO_VALUE]}, NAMES) == {"b": [1]}
    assert resolve(NO_VALUE, NAMES) is None
