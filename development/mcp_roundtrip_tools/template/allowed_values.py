"""Check the value of a parameter against its declaration.

Source: AWS CloudFormation user guide, "Parameters section syntax".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip_tools.template.yaml_reader import scalar_text

MAX_VALUE_BYTES: Final = 4096
LISTS: Final = ("CommaDelimitedList", "List<")


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
    if pattern is None or _matches(pattern, split_list(value) if is_list(parameter) else [value]):
        return None
    described = parameter.get("ConstraintDescription", f"must match {pattern}")
    return f"{name} {described}, not {value!r}."


def is_list(parameter: Mapping[str, Any]) -> bool:
    """Return whether the values of a parameter are lists."""
    return str(parameter.get("Type", "")).startswith(LISTS)


def split_list(value: str) -> list[str]:
    """Return the items of a list parameter's value."""
    return [item.strip() for item in value.split(",")]


def _refused_number(parameter: Mapping[str, Any], value: str) -> str | None:
    try:
        number = float(value)
    except ValueError:
        return "must be a number"
    low, high = float(parameter.get("MinValue", number)), float(parameter.get("MaxValue", number))
    if number < low:
        return f"must be at least {low:g}"
    return f"must be at most {high:g}" if number > high else None


def _matches(pattern: str, items: list[str]) -> bool:
    try:
        return all(re.fullmatch(pattern, item) for item in items)
    except re.error:  # CloudFormation's patterns are those of Java
        return True
