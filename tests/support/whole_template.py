"""Evaluation of a template together with its nested stacks, as one stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation

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
    """Evaluate a transformed template in `folder`. Raises cloudformation.Refused.

    A nested stack may use the outputs of nested stacks above it.
    """
    declared = template["Parameters"]
    unknown = given.keys() - declared.keys()
    missing = {name for name in declared.keys() - given.keys() if "Default" not in declared[name]}
    assert not unknown
    assert not missing
    parameters = cloudformation.parameters_of(template, **given)
    nested = {}
    for name, resource in template["Resources"].items():
        if resource["Type"] == NESTED:
            declared_there = resource["Properties"]
            values = cloudformation.evaluate(declared_there["Parameters"], template, parameters, prefix)
            path = folder / declared_there["TemplateURL"]
            own_prefix = prefix if name == PLATFORM else prefix + name
            nested[name] = evaluate_stack(_load(path), path.parent, values, own_prefix)
            parameters |= {f"{name}.Outputs.{key}": each for key, each in nested[name].outputs.items()}
    resources = cloudformation.resources(template, parameters, prefix)
    for stack in nested.values():
        assert not resources.keys() & stack.resources.keys()
        resources |= stack.resources
    assert ".Outputs." not in str(resources), "an output that does not exist"
    broken = cloudformation.broken_rules(template, parameters)
    return Stack(
        parameters,
        resources,
        cloudformation.outputs(template, parameters, prefix),
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
