"""The parameters of the template: their values, and what CloudFormation would refuse.

Source: AWS CloudFormation user guide, "Parameters section syntax" and "Rules section syntax".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, is_true
from mcp_roundtrip_tools.template.yaml_reader import scalar_text

Declared = Mapping[str, Mapping[str, Any]]
"""The section Parameters of a template."""

MAX_VALUE_BYTES = 4096
LISTS = ("CommaDelimitedList", "List<")


def defaults(declared: Declared) -> dict[str, str]:
    """Return the default values."""
    return {name: scalar_text(each["Default"]) for name, each in declared.items() if "Default" in each}


def unknown(declared: Declared, given: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that the template does not declare, with a sentence."""
    for name in given:
        if name not in declared:
            nearest = get_close_matches(name, declared, 1)
            hint = f" Did you mean {nearest[0]}?" if nearest else ""
            yield name, f"template.yaml has no parameter {name}.{hint}"


def refused_value(name: str, parameter: Mapping[str, Any], value: str) -> str | None:
    """Return why CloudFormation refuses `value`, as a sentence, or None."""
    allowed = [scalar_text(each) for each in parameter.get("AllowedValues", ())]
    if allowed and value not in allowed:
        return f"{name} must be one of {', '.join(each or 'empty' for each in allowed)}, not {value!r}."
    if parameter.get("Type") == "Number" and (problem := _refused_number(parameter, value)):
        return f"{name} {problem}, not {value!r}."
    if len(value.encode()) > MAX_VALUE_BYTES:
        return f"{name} must have at most {MAX_VALUE_BYTES} bytes."
    pattern = parameter.get("AllowedPattern")
    if pattern is None or all(re.fullmatch(pattern, item) for item in _items(parameter, value)):
        return None
    described = parameter.get("ConstraintDescription", f"must match {pattern}")
    return f"{name} {described}, not {value!r}."


def broken_rules(template: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[str]:
    """Yield the descriptions of the assertions in the section Rules that refuse these values."""
    names = template_names(template, values)
    for rule in template.get("Rules", {}).values():
        if "RuleCondition" in rule and not is_true(rule["RuleCondition"], names):
            continue
        for assertion in rule["Assertions"]:
            if not is_true(assertion["Assert"], names):
                yield f"{assertion['AssertDescription']}."


def template_names(template: Mapping[str, Any], values: Mapping[str, Any], **pseudo: str) -> TemplateNames:
    """Return the names of a template with these parameter values, and pseudo parameters such as StackName."""
    declared = template.get("Parameters", {})
    resolved = {
        name: [item.strip() for item in value.split(",")] if _is_list(declared.get(name, {})) else value
        for name, value in values.items()
    }
    resolved |= {f"AWS::{name}": value for name, value in pseudo.items()}
    return TemplateNames(resolved, {}, template.get("Mappings", {}), template.get("Conditions", {}))


def _refused_number(parameter: Mapping[str, Any], value: str) -> str | None:
    try:
        number = float(value)
    except ValueError:
        return "must be a number"
    low, high = float(parameter.get("MinValue", number)), float(parameter.get("MaxValue", number))
    if number < low:
        return f"must be at least {low:g}"
    return f"must be at most {high:g}" if number > high else None


def _is_list(parameter: Mapping[str, Any]) -> bool:
    return str(parameter.get("Type", "")).startswith(LISTS)


def _items(parameter: Mapping[str, Any], value: str) -> list[str]:
    return [item.strip() for item in value.split(",")] if _is_list(parameter) else [value]
