"""Check the template's parameters before anything is served.

The checks are those of a deployment: the template's own rules (AWS CloudFormation user guide, "Rules"), and
the layer's validation of its settings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mcp_roundtrip.deployment.settings import PREFIX, load_settings
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, is_true
from mcp_roundtrip_tools.template.model import Function, TemplateError
from mcp_roundtrip_tools.template.resources import TemplateResource

_IN_TEXT = re.compile(r"\$\{([A-Za-z0-9]+)\}")


def check_rules(document: Mapping[str, Any], names: TemplateNames) -> None:
    """Raise TemplateError with the description of the first assertion that does not hold."""
    for assertion in broken_assertions(document, names):
        description = assertion["AssertDescription"]
        raise TemplateError(f"{description}. Change parameters with {how_to_set('Name')}")


def broken_assertions(document: Mapping[str, Any], names: TemplateNames) -> Iterator[Mapping[str, Any]]:
    """Yield the assertions in the section Rules that do not hold. Those about unknown values hold."""
    for name, rule in (document.get("Rules") or {}).items():
        for assertion in rule.get("Assertions", ()):
            if _holds(rule.get("RuleCondition", _ALWAYS), names) and not _holds(assertion["Assert"], names):
                yield {"AssertDescription": f"rule {name} does not hold", **assertion}


_ALWAYS = {"Fn::Equals": ["", ""]}


def check_settings(function: Function, resource: TemplateResource, settable: Collection[str]) -> None:
    """Raise TemplateError if the layer would reject the function's settings at the first request.

    `settable` are the names of the application's parameters on the command line.
    """
    if not has_settings(function.environment):
        return
    try:
        load_settings(function.environment)
    except SettingsError as error:
        names = dict.fromkeys(_parameters_of(error.setting, resource, settable))
        change = f". Change the parameter with {how_to_set(*names)}" if names else ""
        raise TemplateError(f"{function.name}: {error}{change}") from None


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


def _parameters_of(setting: str, resource: TemplateResource, settable: Collection[str]) -> Iterator[str]:
    """Yield the parameters that a variable of a function refers to.

    A setting that the functions share has the parameter of its name: TokenIssuer for MCP_TOKEN_ISSUER.
    """
    node = dict(resource.members("Environment", "Variables")).get(setting)
    if node is not None:
        own = f"{resource.stack}." if resource.stack else ""
        yield from (f"{own}{name}" for name in _names(node) if f"{own}{name}" in settable)
        return
    shared = "".join(part.capitalize() for part in setting.removeprefix(PREFIX).split("_"))
    found = (name for name in settable if name.rpartition(".")[2] == shared)
    yield from sorted(found, key=len)[:1]


def _names(node: Any) -> Iterator[str]:
    """Yield the names that a value refers to."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "Ref":
                yield str(value)
            elif name == "Fn::Sub":
                yield from _IN_TEXT.findall(str(value))
            else:
                yield from _names(value)
    elif isinstance(node, list):
        for item in node:
            yield from _names(item)
