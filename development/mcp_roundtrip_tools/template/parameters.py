"""The values of the parameters of a template, its rules for them, and CloudFormation's pseudo parameters.

Source: AWS CloudFormation user guide, "Parameters section syntax", "Pseudo parameters reference" and "Rules".
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, is_true
from mcp_roundtrip_tools.template.model import ACCOUNT, REGION, TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load, scalar_text

_LOCAL_URL: Final = re.compile(r"\bhttp://(?=(127\.0\.0\.1|localhost)([:/,]|$))")

LISTS: Final = ("CommaDelimitedList", "List<")

_STORED: Final = "AWS::SSM::Parameter::Value"
"""The type of a parameter whose value is in the Parameter Store begins with it."""


def refused_value(
    name: str, parameter: Mapping[str, Any], value: str, *, is_local: bool = False
) -> str | None:
    """Return why CloudFormation refuses `value`, as a sentence, or None.

    `is_local`: an http URL of this computer counts as an https URL, because its servers have no certificate.
    """
    if is_local:
        value = _LOCAL_URL.sub("https://", value) if refused_value(name, parameter, value) else value
    try:
        allowed = [scalar_text(each) for each in parameter.get("AllowedValues", ())]
        number = _refused_number(parameter, value) if parameter.get("Type") == "Number" else None
    except (TypeError, ValueError) as error:
        raise TemplateError(f"the parameter {name}: {error}") from None
    items = split_list(value) if is_list(parameter) else [value]
    other = next((item for item in items if item not in allowed), None) if allowed else None
    if other is not None:
        return f"{name} must be one of {', '.join(each or 'empty' for each in allowed)}, not {other!r}."
    if number is not None:
        return f"{name} {number}, not {value!r}."
    pattern = parameter.get("AllowedPattern")
    if pattern is None or _matches(pattern, items):
        return None
    described = parameter.get("ConstraintDescription", f"must match {pattern}")
    return f"{name} {described}, not {value!r}."


def is_list(parameter: Mapping[str, Any]) -> bool:
    """Return whether the values of a parameter are lists, given as text or in the Parameter Store."""
    return str(parameter.get("Type", "")).removeprefix(f"{_STORED}<").startswith(LISTS)


def is_masked(parameter: Mapping[str, Any]) -> bool:
    """Return whether CloudFormation shows the values of a parameter as asterisks."""
    return str(parameter.get("NoEcho", "")).lower() == "true"


def split_list(value: str) -> list[str]:
    """Return the items of a list parameter's value."""
    return [item.strip() for item in value.split(",")]


def _refused_number(parameter: Mapping[str, Any], value: str) -> str | None:
    try:
        number = float(value)
    except ValueError:
        return "must be a number"
    low, high = (float(parameter.get(f"{bound}Value", number)) for bound in ("Min", "Max"))
    if number < low:
        return f"must be at least {low:g}"
    return f"must be at most {high:g}" if number > high else None


def _matches(pattern: str, items: list[str]) -> bool:
    try:
        return all(re.fullmatch(pattern, item) for item in items)
    except re.error:  # CloudFormation's patterns are those of Java
        return True


def defaults(declared: Mapping[str, Any]) -> dict[str, str]:
    """Return the default values of the parameters that have one."""
    return {name: scalar_text(each["Default"]) for name, each in declared.items() if "Default" in each}


def pseudo_parameters(stack_name: str) -> dict[str, Any]:
    """Return the pseudo parameters of a stack."""
    return {
        "AWS::AccountId": ACCOUNT,
        "AWS::Partition": "aws",
        "AWS::Region": REGION,
        "AWS::StackName": stack_name,
        "AWS::StackId": stack_id(stack_name),
        "AWS::URLSuffix": "amazonaws.com",
        "AWS::NotificationARNs": [],
    }


def stack_id(stack_name: str) -> str:
    return f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{stack_name}/0"


def required_parameters(declared: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters without a default."""
    return [name for name, parameter in declared.items() if "Default" not in parameter]


def placeholder_parameters(path: Path) -> dict[str, str]:
    """Return placeholders for parameters, to know which settings have a value. Raises TemplateError."""
    declared = load(path).get("Parameters") or {}
    names = required_parameters(declared)
    found = {name: str([*declared[name].get("AllowedValues", []), name][0]) for name in names}
    return {**found, **with_auth_mode(path, {})}


def with_auth_mode(path: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters, with AuthMode none if one is required and not given. Raises TemplateError."""
    required = required_parameters(load(path).get("Parameters") or {})
    return {"AuthMode": "none", **given} if "AuthMode" in required else dict(given)


def default_value(name: str, declared: Mapping[str, Any]) -> str | Unresolvable:
    """Return the default of a parameter, or how to set it. Raises TemplateError."""
    if str(declared.get("Type")).startswith(_STORED):
        return Unresolvable(f"the parameter {name} is in the Parameter Store: set it with {how_to_set(name)}")
    if "Default" not in declared:
        return Unresolvable(f"the parameter {name} has no default: set it with {how_to_set(name)}")
    try:
        return scalar_text(declared["Default"])
    except TypeError as error:
        raise TemplateError(f"the parameter {name}: {error}") from None


def how_to_set(name: str) -> str:
    """Return the command-line options that set a parameter, with and without make."""
    return f'--parameter {name}=…, or make run PARAMETERS="{name}=…"'


def broken_rules(document: Mapping[str, Any], names: TemplateNames) -> Iterator[str]:
    """Yield what the assertions in the section Rules say that do not hold, as far as values are known."""
    for name, rule in (document.get("Rules") or {}).items():
        for assertion in rule.get("Assertions", ()):
            applies = _outcome(rule.get("RuleCondition", _ALWAYS), names)
            if applies and _outcome(assertion.get("Assert"), names) is False:
                yield assertion.get("AssertDescription", f"rule {name} does not hold")


_ALWAYS = {"Fn::Equals": ["", ""]}


def _outcome(condition: Any, names: TemplateNames) -> bool | None:
    """Return whether a condition holds; None if it depends on values that only a deployment knows."""
    try:
        return is_true(condition, names)
    except Unresolvable:
        return None
