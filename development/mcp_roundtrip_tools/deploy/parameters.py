"""The parameters of the template: their values, and what CloudFormation would refuse.

Source: AWS CloudFormation user guide, "Parameters section syntax" and "Rules section syntax".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from mcp_roundtrip_tools.template.allowed_values import is_list, split_list
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, is_true
from mcp_roundtrip_tools.template.yaml_reader import scalar_text

Declared = Mapping[str, Mapping[str, Any]]
"""The section Parameters of a template."""


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
        name: split_list(value) if is_list(declared.get(name, {})) else value
        for name, value in values.items()
    }
    resolved |= {f"AWS::{name}": value for name, value in pseudo.items()}
    return TemplateNames(resolved, {}, template.get("Mappings", {}), template.get("Conditions", {}))
