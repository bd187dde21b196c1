"""The stack of a template and its nested stacks before a deployment: values, and what would be refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, resolve
from mcp_roundtrip_tools.template.parameters import is_list, refused_value, split_list
from mcp_roundtrip_tools.template.template_tree import TemplateTree
from mcp_roundtrip_tools.template.validation import broken_assertions
from mcp_roundtrip_tools.template.yaml_reader import scalar_text

Declared = Mapping[str, Mapping[str, Any]]
"""The section Parameters of a template."""


def defaults(declared: Declared) -> dict[str, str]:
    """Return the default values."""
    return {name: scalar_text(each["Default"]) for name, each in declared.items() if "Default" in each}


def template_names(template: Mapping[str, Any], values: Mapping[str, Any], **pseudo: str) -> TemplateNames:
    """Return the names of a template with these parameter values, and pseudo parameters such as StackName."""
    declared = template.get("Parameters", {})
    resolved = {
        name: split_list(value) if is_list(declared.get(name, {})) else value
        for name, value in values.items()
    }
    resolved |= {f"AWS::{name}": value for name, value in pseudo.items()}
    return TemplateNames(resolved, {}, template.get("Mappings", {}), template.get("Conditions", {}))


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack. `name` is its logical id in the template of its parent, empty for the root.

    `passed` has the parameters as the parent's template writes them. `values` has those that are known before
    a deployment: an output of another stack is not.
    """

    name: str
    tree: TemplateTree
    passed: Mapping[str, Any]
    values: Mapping[str, str]
    names: TemplateNames

    @property
    def section(self) -> str:
        """The place where the parent passes the parameters."""
        return section_of(self.name)


def section_of(stack: str) -> str:
    """Return the place of the parameters of a nested stack, for messages."""
    return f"{stack}.Properties.Parameters in template.yaml"


def read_stacks(tree: TemplateTree, values: Mapping[str, str], name: str | None) -> list[Stack]:
    """Return the stack `name` of the template, and its nested stacks. `values` are the root's parameters."""
    pseudo = {} if name is None else {"StackName": name}
    root = Stack("", tree, {}, values, template_names(tree.document, values, **pseudo))
    return [root, *_nested(root)]


def known_values(stacks: list[Stack]) -> dict[str, str]:
    """Return the known values of all parameters. A nested stack's replaces the root's of the same name."""
    return {name: value for stack in stacks for name, value in stack.values.items()}


def _nested(parent: Stack) -> Iterator[Stack]:
    for name, tree in parent.tree.nested.items():
        resource = parent.tree.document["Resources"][name]
        with suppress(Unresolvable):
            if "Condition" in resource and not holds(resource["Condition"], parent.names):
                continue
        passed = (resource.get("Properties") or {}).get("Parameters") or {}
        values = _known(passed, tree, parent.names)
        stack = Stack(name, tree, passed, values, template_names(tree.document, values))
        yield stack
        yield from _nested(stack)


def _known(passed: Mapping[str, Any], tree: TemplateTree, names: TemplateNames) -> dict[str, str]:
    known = defaults(tree.declared)
    for name, node in passed.items():
        try:
            value = resolve(node, names)
        except Unresolvable:  # for example an output of another stack
            known.pop(name, None)
            continue
        if isinstance(value, (str, int, float)):  # AWS::NoValue is None, and leaves the default
            known[name] = scalar_text(value)
    return known


STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")

MAXIMUM = {
    ("AWS::Serverless::Function", "FunctionName"): 64,
    ("AWS::Serverless::LayerVersion", "LayerName"): 140,
    ("AWS::SQS::Queue", "QueueName"): 80,
    ("AWS::KMS::Alias", "AliasName"): 256,
    ("AWS::AppConfig::Application", "Name"): 64,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::ApiGatewayV2::Api", "Name"): 128,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
}
"""The characters that a property of a resource type may have."""


def refused_names(stacks: Iterable[Stack], name: str) -> Iterator[str]:
    """Yield a sentence if the stack's name is invalid, or makes the name of a resource too long.

    `stacks` are the stack `name` and its nested stacks.
    """
    if not STACK_NAME.fullmatch(name):
        yield (
            f"The stack's name {name!r} must consist of at most 128 letters, digits and hyphens, "
            "and start with a letter."
        )
        return
    lengths = (length for stack in stacks for length in _lengths(stack))
    excess, longest, maximum = max(lengths, default=(0, "", 0))
    if excess > 0:
        yield (
            f"The stack's name {name!r} is {excess} characters too long: the name {longest} would have "
            f"{len(longest)} characters, and AWS accepts {maximum}."
        )


def _lengths(stack: Stack) -> Iterator[tuple[int, str, int]]:
    """Yield by how much each name exceeds its maximum, the name and the maximum."""
    for resource in stack.tree.document["Resources"].values():
        for (kind, property_name), maximum in MAXIMUM.items():
            if resource["Type"] == kind and property_name in resource.get("Properties", {}):
                try:
                    name = resolve(resource["Properties"][property_name], stack.names)
                except Unresolvable:  # it contains what only a deployment knows
                    continue
                yield len(str(name)) - maximum, str(name), maximum


def refused_by_nested(stack: Stack) -> Iterator[str]:
    """Yield a sentence for each reason why CloudFormation would refuse the parameters of a nested stack."""
    declared = stack.tree.declared
    wrong = unknown_options(stack)
    wrong += [
        f"{stack.section} needs a line {name}: …, because {stack.tree.label} has no default for it."
        for name, parameter in declared.items()
        if "Default" not in parameter and name not in stack.passed
    ]
    wrong += [
        f"{problem.removesuffix('.')}: change it under {stack.section}."
        for name, value in stack.values.items()
        if name in declared and (problem := refused_value(name, declared[name], value))
    ]
    yield from wrong
    if not wrong:  # rules compare valid values
        for assertion in broken_assertions(stack.tree.document, stack.names):
            yield f"{assertion['AssertDescription']}: {_remedy(stack, assertion['Assert'])}."


def unknown_options(stack: Stack) -> list[str]:
    """Return a sentence for each parameter that the template sets, and a nested stack does not declare."""
    return [_unknown(stack, name) for name in stack.passed if name not in stack.tree.declared]


def unknown_parameter(name: str, value: str | None, tree: TemplateTree) -> str:
    """Return a sentence for a name that the template does not declare. `value` None removes the parameter.

    It may be the parameter of a nested stack, which is set in the template, with or without the stack's
    logical id, as in `Platform.AuditLog`.
    """
    given, _, option = name.rpartition(".")
    nested = {given: tree.nested[given]} if given in tree.nested else {} if given else tree.nested
    for owner, each in nested.items():
        if option in each.declared:
            line = f"delete its line {option}" if value is None else f"write the line {option}: {value}"
            return f"{option} is no parameter of template.yaml: {line} under {section_of(owner)}."
    hint = ""
    if nearest := get_close_matches(name, tree.declared, 1):
        hint = f" Did you mean {nearest[0]}?"
    else:
        for owner, each in nested.items():
            if nearest := get_close_matches(option, each.declared, 1):
                hint = f" Did you mean {nearest[0]}, a line under {section_of(owner)}?"
                break
    return f"template.yaml has no parameter {name}.{hint}"


def _unknown(stack: Stack, name: str) -> str:
    nearest = get_close_matches(name, stack.tree.declared, 1)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    return f"{stack.section} has {name}, which {stack.tree.label} does not have.{hint}"


def _remedy(stack: Stack, assertion: Any) -> str:
    """Say where to set the first parameter of an assertion."""
    name = next(_referenced(assertion, stack.tree.declared), "")
    match stack.passed.get(name):
        case {"Ref": str(parameter)}:
            return f'set it with PARAMETERS="{parameter}=…"'
    return f"write {name} under {stack.section}"


def _referenced(node: Any, declared: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref" and value in declared:
                yield value
            else:
                yield from _referenced(value, declared)
    elif isinstance(node, list):
        for each in node:
            yield from _referenced(each, declared)
