"""The order in which CloudFormation creates the nested stacks of a template.

Source: AWS CloudFormation user guide, "DependsOn attribute" and "Intrinsic function reference": a resource is
created after those that it refers to.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import VARIABLE, TemplateNames, Unresolvable, holds
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.resource import TemplateResource
from mcp_roundtrip_tools.template.resources import FUNCTION, NESTED, TemplateResources

_OTHER_RESOURCES: Final = (
    *("DeploymentPreference", "EventInvokeConfig", "Events", "FunctionUrlConfig"),
    "ProvisionedConcurrencyConfig",
)
"""Properties of a function that SAM moves to resources of their own."""


def nested_stacks(resources: TemplateResources) -> list[TemplateResource]:
    """Return the nested stacks, each after those on whose outputs it depends.

    A dependency may lead through other resources, such as a function. Raises TemplateError for a circle.
    """
    nested = [each for each in resources if resources.kind(each) in NESTED]
    graph: dict[str, set[str]] = {}
    remaining = [*nested]
    while remaining:
        if (name := remaining.pop()) not in graph:
            graph[name] = {each for each in _dependencies(resources, name) if resources.kind(each)}
            remaining += graph[name]
    try:
        ordered = [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = [resources.resource(each).name for each in reversed(error.args[1])]
        raise TemplateError(f"circular dependency: {' depends on '.join(circle)}") from None
    return [resources.resource(each) for each in ordered if each in nested]


def _dependencies(resources: TemplateResources, logical_id: str) -> Iterator[str]:
    """Yield the logical ids that a resource refers to, also those that do not exist."""
    resource = resources.resource(logical_id)
    yield from resources.depends_on(logical_id)
    for name, node in resource.properties.items():
        if resources.kind(logical_id) != FUNCTION or name not in _OTHER_RESOURCES:
            yield from _references(node, resource.names)


def _references(node: Any, names: TemplateNames) -> Iterator[str]:
    match node:
        case {"Ref": str(name)}:
            yield name.partition(".")[0]  # SAM has Function.Alias
        case {"Fn::GetAtt": str(name) | [str(name), *_]}:
            yield name.partition(".")[0]
        case {"Fn::Sub": str(text) | [str(text), _]}:
            yield from (
                name.strip().partition(".")[0] for literal, name in VARIABLE.findall(text) if not literal
            )
            yield from _references(node["Fn::Sub"][1:], names) if isinstance(node["Fn::Sub"], list) else ()
        case {"Fn::If": [str(condition), then, otherwise]}:
            for branch in _branches(condition, then, otherwise, names):
                yield from _references(branch, names)
        case dict():
            for each in node.values():
                yield from _references(each, names)
        case list():
            for each in node:
                yield from _references(each, names)


def _branches(condition: str, then: Any, otherwise: Any, names: TemplateNames) -> tuple[Any, ...]:
    try:
        return (then,) if holds(condition, names) else (otherwise,)
    except Unresolvable:
        return then, otherwise
