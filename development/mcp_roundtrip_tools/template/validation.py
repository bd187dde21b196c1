"""Check the template's parameters before anything is served.

The checks are those of a deployment: the template's own rules (AWS CloudFormation user guide, "Rules"), and
the layer's validation of its settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_roundtrip.deployment.settings import PREFIX, load_settings
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, is_true
from mcp_roundtrip_tools.template.model import Function, TemplateError


def broken_assertions(document: Mapping[str, Any], names: TemplateNames) -> Iterator[Mapping[str, Any]]:
    """Yield the assertions in the section Rules that do not hold. Those about unknown values hold."""
    for name, rule in (document.get("Rules") or {}).items():
        for assertion in rule.get("Assertions", ()):
            if _holds(rule.get("RuleCondition", _ALWAYS), names) and not _holds(assertion["Assert"], names):
                yield {"AssertDescription": f"rule {name} does not hold", **assertion}


_ALWAYS = {"Fn::Equals": ["", ""]}


def check_settings(function: Function) -> None:
    """Raise TemplateError if the layer would reject the function's settings at the first request."""
    if not has_settings(function.environment):
        return
    try:
        load_settings(function.environment)
    except SettingsError as error:
        raise TemplateError(f"{function.name}: {error}") from None


def has_settings(environment: Mapping[str, str]) -> bool:
    """Return whether a function with these variables is an MCP server."""
    return any(name.startswith(PREFIX) for name in environment)


def how_to_set(*names: str) -> str:
    """Return the command-line options that set these parameters, with and without make."""
    options = " ".join(f"--parameter {name}=…" for name in names)
    return f'{options}, or make run PARAMETERS="{" ".join(f"{name}=…" for name in names)}"'


def _holds(condition: Any, names: TemplateNames) -> bool:
    try:
        return is_true(condition, names)
    except Unresolvable:  # it depends on values that only a deployment knows
        return True
