"""The values of a template's parameters, and of CloudFormation's pseudo parameters.

Source: AWS CloudFormation user guide, "Parameters section syntax" and "Pseudo parameters reference".
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.intrinsics import Unresolvable
from mcp_roundtrip_tools.template.model import ACCOUNT, REGION, STACK_NAME, TemplateError
from mcp_roundtrip_tools.template.validation import how_to_set
from mcp_roundtrip_tools.template.yaml_reader import load, scalar_text

PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": STACK_NAME,
    "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK_NAME}/0",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::NotificationARNs": [],
}


def resolve_parameters(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the declared parameters: those given, and defaults; otherwise Unresolvable.

    Raises TemplateError for a value that is not allowed.
    """
    for name in given:
        if name not in declared:
            nearest = get_close_matches(name, declared, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(declared) or 'none'}"
            raise TemplateError(f"the template has no parameter {name}; {hint}")
    return {name: _parameter(name, parameter, given) for name, parameter in declared.items()}


ASSUMED_PARAMETERS = {"AuthMode": "none"}
"""Values for required parameters that matter only in a deployment."""


def placeholder_parameters(path: Path) -> dict[str, str]:
    """Return values for the parameters without a default: assumed ones, the first allowed one, or the name.

    They tell which settings have a value. Raises TemplateError.
    """
    declared = load(path).get("Parameters") or {}
    return {
        name: ASSUMED_PARAMETERS.get(name) or str([*parameter.get("AllowedValues", []), name][0])
        for name, parameter in declared.items()
        if "Default" not in parameter
    }


def parameters_without_default(path: Path) -> set[str]:
    """Return the names of the parameters without a default. Raises TemplateError."""
    return {
        name for name, parameter in load(path).get("Parameters", {}).items() if "Default" not in parameter
    }


def _parameter(name: str, declared: Mapping[str, Any], given: Mapping[str, str]) -> Any:
    kind = str(declared.get("Type", "String"))
    if name not in given and kind.startswith("AWS::SSM::Parameter::Value"):
        return Unresolvable(f"the parameter {name} is in the Parameter Store: set it with {how_to_set(name)}")
    if name not in given and "Default" not in declared:
        return Unresolvable(f"the parameter {name} has no default: set it with {how_to_set(name)}")
    try:
        value = given[name] if name in given else scalar_text(declared["Default"])
        allowed = [scalar_text(option) for option in declared.get("AllowedValues", [])]
    except TypeError as error:
        raise TemplateError(f"the parameter {name}: {error}") from None
    if allowed and value not in allowed:
        choices = ", ".join(option or "empty" for option in allowed)
        raise TemplateError(f"the parameter {name} must be one of {choices}")
    if kind == "CommaDelimitedList" or kind.startswith("List<"):
        return [item.strip() for item in value.split(",")]
    return value
