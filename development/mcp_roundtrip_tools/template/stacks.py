"""The stacks of an application: its template and the nested ones, each after those that it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import VARIABLE, TemplateNames, Unresolvable, holds
from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.local_names import LocalServices, local_names, nested_stack_name
from mcp_roundtrip_tools.template.model import STACK_NAME, TemplateError
from mcp_roundtrip_tools.template.nearest import hint
from mcp_roundtrip_tools.template.parameters import pseudo_parameters, resolve_parameters
from mcp_roundtrip_tools.template.resources import FUNCTION, NESTED, TemplateResource, TemplateResources
from mcp_roundtrip_tools.template.template_tree import TemplateTree
from mcp_roundtrip_tools.template.validation import check_rules

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


Values = Mapping[str, str | Unresolvable]
"""The values of parameters, or the outputs of a stack."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The resources of one template, with the names that they are resolved with."""

    resources: TemplateResources
    names: TemplateNames


class Stacks:
    """The stacks of an application, that of its template first.

    `others` are the reasons why further nested stacks are not run, by name.
    """

    def __init__(self, stacks: list[Stack], others: Mapping[str, str]) -> None:
        self._stacks = stacks
        self._others = others

    def __iter__(self) -> Iterator[Stack]:
        return iter(self._stacks)

    def of_type(self, kind: str) -> Iterator[TemplateResource]:
        """Yield the resources of a type in all stacks."""
        for stack in self._stacks:
            yield from stack.resources.of_type(kind, stack.names)

    def globals_of(self, kind: str) -> Iterator[TemplateResource]:
        """Yield the properties that the Globals of each template give to all resources of a kind."""
        for stack in self._stacks:
            yield stack.resources.globals_of(kind, stack.names)

    def problem_of(self, name: str) -> str | None:
        """Return why the condition of a resource cannot be evaluated; None if it can."""
        found = (stack.resources.problems.get(name) for stack in self._stacks)
        return next((problem for problem in found if problem), None)

    def left_out(self) -> LeftOut:
        """Return what is left out whatever its properties are, to which readers add."""
        found = LeftOut()
        for stack in self._stacks:
            stack.resources.leave_out(found)
        found.targets |= self._others
        return found


def read_stacks(
    tree: TemplateTree, given: Mapping[str, str], services: LocalServices, *, checks_values: bool
) -> Stacks:
    """Return the stacks of an application.

    `given` are values of its parameters, and of those of nested stacks as `Platform.NAME`, which replace what
    the parent passes. With `checks_values`, raises TemplateError for a value that is not allowed.
    """
    reader = _StackReader(services, checks_values)
    reader.read(tree, "", STACK_NAME, {name: each for name, each in given.items() if "." not in name}, given)
    return Stacks(reader.stacks[::-1], reader.others)


class _StackReader:
    """Reads the stacks of an application, each after its nested stacks."""

    def __init__(self, services: LocalServices, checks_values: bool) -> None:
        self._services = services
        self._checks_values = checks_values
        self.stacks: list[Stack] = []
        self.others: dict[str, str] = {}

    def read(
        self, tree: TemplateTree, name: str, stack_name: str, values: Values, given: Mapping[str, str]
    ) -> Values:
        """Read a stack with its nested stacks; return its outputs. `given` are for the nested stacks."""
        prefix = f"{name}." if name else ""
        parameters = resolve_parameters(tree.declared, values, prefix, self._checks_values)
        mappings, conditions = (tree.document.get(each) or {} for each in ("Mappings", "Conditions"))
        names = TemplateNames({**pseudo_parameters(stack_name), **parameters}, {}, mappings, conditions)
        check_rules(tree.document, names)
        resources = TemplateResources(tree.document, names, tree.path.parent, name)
        resolved = local_names(names, resources, self._services)
        for nested in nested_stacks(resources):
            if nested.logical_id not in tree.nested:
                reason = f"{nested.name}: a nested stack is run if its template is a file"
                self.others[nested.physical_name] = reason
                continue
            nested = replace(nested, names=resolved)
            outputs = self._read_nested(nested, tree.nested[nested.logical_id], given)
            names = replace(names, outputs={**names.outputs, nested.logical_id: outputs})
            resolved = local_names(names, resources, self._services)
        self.stacks.append(Stack(resources, resolved))
        return _outputs(tree, TemplateResource("Outputs", {}, resolved, tree.path.parent, name))

    def _read_nested(self, nested: TemplateResource, tree: TemplateTree, given: Mapping[str, str]) -> Values:
        start = f"{nested.logical_id}."
        own = {name.removeprefix(start): each for name, each in given.items() if name.startswith(start)}
        values = {**_passed(nested, tree), **{name: each for name, each in own.items() if "." not in name}}
        for name, parameter in tree.declared.items():
            if name not in values and "Default" not in parameter:
                raise TemplateError(f"{nested.name}.Parameters: {tree.label} needs a value of {name}")
        return self.read(tree, nested.name, nested_stack_name(nested), values, own)


def _passed(nested: TemplateResource, tree: TemplateTree) -> dict[str, str | Unresolvable]:
    """Return the values that the parent passes to a nested stack. Raises TemplateError."""
    found: dict[str, str | Unresolvable] = {}
    for name, node in nested.members("Parameters"):
        member = f"Parameters.{name}"
        if name not in tree.declared:
            raise TemplateError(
                f"{nested.name}.{member}: {tree.label} has no such parameter; {hint(name, [*tree.declared])}"
            )
        try:
            value = nested.resolve(member, node)
        except TemplateError as error:
            found[name] = Unresolvable(str(error))
            continue
        if isinstance(value, list):
            raise TemplateError(f"{nested.name}.{member}: must be a string: join the list with !Join")
        if value is not None:
            found[name] = nested.as_text(member, value)
    return found


def _outputs(tree: TemplateTree, section: TemplateResource) -> dict[str, str | Unresolvable]:
    return {
        name: _output(section.part(name, output), output.get("Condition"))
        for name, output in (tree.document.get("Outputs") or {}).items()
    }


def _output(output: TemplateResource, condition: str | None) -> str | Unresolvable:
    try:
        if condition is not None and not holds(condition, output.names):
            return Unresolvable(f"{output.name} does not exist under these conditions")
        return output.text("Value")
    except (TemplateError, Unresolvable) as error:
        return Unresolvable(str(error))
