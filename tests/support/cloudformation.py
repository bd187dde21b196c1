"""Evaluation of a CloudFormation template for given parameters, also together with its nested stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template import intrinsics
from mcp_roundtrip_tools.template.parameters import is_list, refused_value, split_list
from mcp_roundtrip_tools.template.yaml_reader import load, scalar_text

Template = Mapping[str, Any]
Parameters = Mapping[str, Any]


class Refused(Exception):
    """CloudFormation refuses a parameter value."""


def parameters_of(template: Template, **given: str) -> dict[str, Any]:
    """Return the value of every parameter: given or default. Raises Refused."""
    return {
        name: _parameter(name, declared, scalar_text(given.get(name, declared.get("Default"))))
        for name, declared in template["Parameters"].items()
        if name in given or "Default" in declared
    }


def _parameter(name: str, declared: Mapping[str, Any], value: str) -> str | list[str]:
    if problem := refused_value(name, declared, value):
        raise Refused(problem)
    return split_list(value) if is_list(declared) else value


class _References(dict[str, Any]):
    """The values of names in a template; as in Fn::Sub if only a deployment knows them.

    `prefix` stands before the names of resources.
    """

    def __init__(self, template: Template, parameters: Parameters, prefix: str) -> None:
        super().__init__(parameters)
        self._template, self._parameters, self._prefix = template, parameters, prefix

    def __missing__(self, name: str) -> Any:
        resource, _, member = name.partition(".")
        match self._template.get("Resources", {}).get(resource), member:
            case {"Type": "AWS::SSM::Parameter", "Properties": {"Value": text}}, "Value":
                return evaluate(text, self._template, self._parameters, self._prefix)
            case None, _:
                return f"${{{name}}}"
        return f"${{{self._prefix}{name}}}"


def _names(template: Template, parameters: Parameters, prefix: str = "") -> intrinsics.TemplateNames:
    found = _References(template, parameters, prefix)
    return intrinsics.TemplateNames(
        found, found, template.get("Mappings", {}), template.get("Conditions", {})
    )


def evaluate(value: Any, template: Template, parameters: Parameters, prefix: str = "") -> Any:
    """Resolve parameters, conditions, mappings and functions in `value`.

    Values known only to a deployment stay as in Fn::Sub: ``${Resource}``, ``${Resource.Attribute}``, with
    `prefix` before names of resources. `parameters` may also have attributes: "Platform.Outputs.Api".
    """
    return intrinsics.resolve(value, _names(template, parameters, prefix))


def condition(name: str, template: Template, parameters: Parameters) -> bool:
    return intrinsics.holds(name, _names(template, parameters))


def _existing(declared: Mapping[str, Any], template: Template, parameters: Parameters) -> dict[str, Any]:
    return {
        name: each
        for name, each in declared.items()
        if "Condition" not in each or condition(each["Condition"], template, parameters)
    }


def resources(template: Template, parameters: Parameters, prefix: str = "") -> dict[str, Any]:
    """Return the existing resources by `prefix` and logical id, with evaluated properties."""
    return {
        f"{prefix}{name}": {
            **each,
            "Properties": evaluate(each.get("Properties", {}), template, parameters, prefix),
        }
        for name, each in _existing(template["Resources"], template, parameters).items()
    }


def outputs(template: Template, parameters: Parameters, prefix: str = "") -> dict[str, Any]:
    existing = _existing(template.get("Outputs", {}), template, parameters)
    return {name: evaluate(each["Value"], template, parameters, prefix) for name, each in existing.items()}


def broken_rules(template: Template, parameters: Parameters) -> list[str]:
    """Return the descriptions of the assertions in `Rules` that refuse these parameters."""
    names = _names(template, parameters)
    return [
        each["AssertDescription"]
        for rule in template.get("Rules", {}).values()
        if "RuleCondition" not in rule or intrinsics.is_true(rule["RuleCondition"], names)
        for each in rule["Assertions"]
        if not intrinsics.is_true(each["Assert"], names)
    ]


NESTED = "AWS::CloudFormation::Stack"
PLATFORM = "Platform"
"""The nested stack whose resources keep their names. Others put their own name before them."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack and its nested stacks, evaluated. References are as in Fn::Sub."""

    parameters: dict[str, Any]
    resources: dict[str, Any]
    outputs: dict[str, Any]
    broken_rules: list[str]
    nested: dict[str, Stack] = field(default_factory=dict)


def evaluate_stack(
    template: Mapping[str, Any], folder: Path, given: Mapping[str, str], prefix: str = ""
) -> Stack:
    """Evaluate a transformed template in `folder`. Raises Refused.

    A nested stack may use the outputs of nested stacks above it.
    """
    declared = template["Parameters"]
    unknown = given.keys() - declared.keys()
    missing = {name for name in declared.keys() - given.keys() if "Default" not in declared[name]}
    assert not unknown
    assert not missing
    parameters = parameters_of(template, **given)
    nested = {}
    for name, resource in template["Resources"].items():
        if resource["Type"] == NESTED:
            declared_there = resource["Properties"]
            values = evaluate(declared_there["Parameters"], template, parameters, prefix)
            path = folder / declared_there["TemplateURL"]
            own_prefix = prefix if name == PLATFORM else prefix + name
            nested[name] = evaluate_stack(_load(path), path.parent, values, own_prefix)
            parameters |= {f"{name}.Outputs.{key}": each for key, each in nested[name].outputs.items()}
    existing = resources(template, parameters, prefix)
    for stack in nested.values():
        assert not existing.keys() & stack.resources.keys()
        existing |= stack.resources
    assert ".Outputs." not in str(existing), "an output that does not exist"
    broken = broken_rules(template, parameters)
    return Stack(
        parameters,
        existing,
        outputs(template, parameters, prefix),
        [*broken, *(rule for stack in nested.values() for rule in stack.broken_rules)],
        nested,
    )


def with_options(template: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """Return a transformed template that passes these options to the platform."""
    platform = template["Resources"][PLATFORM]
    properties = platform["Properties"]
    passed = {**properties, "Parameters": {**properties["Parameters"], **options}}
    resources = {**template["Resources"], PLATFORM: {**platform, "Properties": passed}}
    return {**template, "Resources": resources}


@cache
def _load(path: Path) -> dict[str, Any]:
    return load(path)
