"""What a nested stack would refuse in the middle of a deployment, and parameters that only it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from mcp_roundtrip_tools.deploy.parameters import broken_assertions
from mcp_roundtrip_tools.deploy.stacks import Stack, section_of
from mcp_roundtrip_tools.template.allowed_values import refused_value
from mcp_roundtrip_tools.template.template_tree import TemplateTree


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
