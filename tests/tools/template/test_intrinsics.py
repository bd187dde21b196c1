from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, resolve

NAMES = TemplateNames(
    values={
        "Stage": "prod",
        "Count": "2",
        "Names": ["a", "b"],
        "Fn.Alias": "arn:fn:live",
        "AWS::Region": "us-east-1",
    },
    attributes={"Fn.Arn": "arn:fn"},
    mappings={"Sizes": {"prod": {"memory": 1024}}},
    conditions={
        "IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
        "IsTwo": {"Fn::Equals": [{"Ref": "Count"}, 2]},
        "Neither": {"Fn::Not": [{"Fn::Or": [{"Condition": "IsProd"}, {"Condition": "IsTwo"}]}]},
        "Both": {"Fn::And": [{"Condition": "IsProd"}, {"Condition": "IsTwo"}]},
    },
)


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ("plain", "plain"),
        ({"Ref": "Stage"}, "prod"),
        ({"Fn::Sub": "${Stage}-${AWS::Region}-${Fn.Arn}-${Fn.Alias}"}, "prod-us-east-1-arn:fn-arn:fn:live"),
        ({"Fn::Sub": "${!Stage} stays"}, "${Stage} stays"),
        ({"Fn::Sub": ["${x}-${Stage}", {"x": {"Ref": "Count"}}]}, "2-prod"),
        ({"Fn::GetAtt": ["Fn", "Arn"]}, "arn:fn"),
        ({"Fn::GetAtt": "Fn.Arn"}, "arn:fn"),
        ({"Fn::If": ["IsProd", "yes", {"Ref": "Nobody"}]}, "yes"),
        ({"Fn::If": ["Neither", {"Fn::ImportValue": "not taken"}, "no"]}, "no"),
        ({"Fn::Join": [",", {"Ref": "Names"}]}, "a,b"),
        ({"Fn::Select": [1, {"Fn::Split": ["/", "x/y"]}]}, "y"),
        ({"Fn::Select": ["0", {"Ref": "Names"}]}, "a"),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "Stage"}, "memory"]}, 1024),
        ({"Ref": "AWS::NoValue"}, None),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [1, {"Ref": "AWS::NoValue"}]}, {"b": [1]}),
        ({"Statement": {"Ref": "Stage"}, "x": 1}, {"Statement": "prod", "x": 1}),
    ],
)
def test_a_function_is_replaced_by_its_value(node: Any, value: Any) -> None:
    assert resolve(node, NAMES) == value


@pytest.mark.parametrize(
    "node",
    [
        {"Ref": "Nobody"},
        {"Fn::GetAtt": ["Fn", "Colour"]},
        {"Fn::Sub": "${Nobody}"},
        {"Fn::Sub": "${Names}"},
        {"Fn::ImportValue": "elsewhere"},
        {"Fn::GetAZs": ""},
        {"Fn::FindInMap": ["Sizes", "test", "memory"]},
        {"Fn::Select": [5, ["a"]]},
        {"Fn::If": ["NoSuchCondition", 1, 2]},
        {"Fn::If": ["IsProd"]},
        {"Fn::Join": [",", "text"]},
        "{{resolve:ssm:/a}}",
    ],
)
def test_values_known_only_to_a_deployment_are_refused(node: Any) -> None:
    with pytest.raises(Unresolvable):
        resolve(node, NAMES)


def test_conditions_can_be_combined() -> None:
    assert holds("Both", NAMES)
    assert not holds("Neither", NAMES)
    with pytest.raises(Unresolvable):
        holds("Odd", TemplateNames({}, {}, {}, {"Odd": "true"}))
