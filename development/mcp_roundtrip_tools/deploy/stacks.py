"""The stack of a template and its nested stacks, with the values of their parameters before a deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip_tools.deploy.parameters import defaults, template_names
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, resolve
from mcp_roundtrip_tools.template.template_tree import TemplateTree
from mcp_roundtrip_tools.template.yaml_reader import scalar_text


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
