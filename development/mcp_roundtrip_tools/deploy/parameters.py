"""The parameters of the template: their values, and what CloudFormation would refuse.

Source: AWS CloudFormation user guide, "Parameters section syntax" and "Rules section syntax".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from mcp_roundtrip_tools.template.allowed_values import is_list, split_list
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, is_true
from mcp_roundtrip_tools.template.yaml_reader import scalar_text

Declared = Mapping[str, Mapping[str, Any]]
"""The section Parameters of a template."""


def defaults(declared: Declared) -> dict[str, str]:
    """Return the default values."""
    return {name: scalar_text(each["Default"]) for name, each in declared.items() if "Default" in each}


def broken_assertions(document: Mapping[str, Any], names: TemplateNames) -> Iterator[Mapping[str, Any]]:
    """Yield the assertions in the section Rules that do not hold. Those about unknown values hold."""
    for rule in document.get("Rules", {}).values():
        with suppress(Unresolvable):
            if "RuleCondition" in rule and not is_true(rule["RuleCondition"], names):
                continue
        for assertion in rule["Assertions"]:
            with suppress(Unresolvable):
                if not is_true(assertion["Assert"], names):
                    yield assertion


def template_names(template: Mapping[str, Any], values: Mapping[str, Any], **pseudo: str) -> TemplateNames:
    """Return the names of a template with these parameter values, and pseudo parameters such as StackName."""
    declared = template.get("Parameters", {})
    resolved = {
        name: split_list(value) if is_list(declared.get(name, {})) else value
        for name, value in values.items()
    }
    resolved |= {f"AWS::{name}": value for name, value in pseudo.items()}
    return TemplateNames(resolved, {}, template.get("Mappings", {}), template.get("Conditions", {}))
