"""Resolve intrinsic functions (AWS CloudFormation user guide, "Intrinsic function reference").

Nodes have the long form (``{"Fn::Sub": …}``); `yaml_reader` converts the short tags.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip_tools.template.yaml_reader import scalar_text

VARIABLE = re.compile(r"\$\{(!?)([^{}]+)\}")
_NO_VALUE = object()


class Unresolvable(Exception):
    """The value depends on something that only a deployment knows."""


@dataclass(frozen=True, slots=True)
class TemplateNames:
    """What names refer to: `values` for Ref, `attributes` for GetAtt. A value may be Unresolvable."""

    values: Mapping[str, Any]
    attributes: Mapping[str, Any]
    mappings: Mapping[str, Any]
    conditions: Mapping[str, Any]


def resolve(node: Any, names: TemplateNames) -> Any:
    """Return the value of `node`; None for AWS::NoValue. Raises Unresolvable with the reason."""
    value = _resolve(node, names)
    return None if value is _NO_VALUE else value


def holds(condition: Any, names: TemplateNames) -> bool:
    """Return whether the named condition is true. Raises Unresolvable."""
    if not isinstance(condition, str) or condition not in names.conditions:
        raise Unresolvable(f"there is no condition {condition}")
    try:
        return is_true(names.conditions[condition], names)
    except RecursionError:
        raise Unresolvable(f"circular dependency: the condition {condition} depends on itself") from None


def is_true(node: Any, names: TemplateNames) -> bool:
    """Evaluate a condition function. Raises Unresolvable."""
    match node:
        case {"Condition": condition}:
            return holds(condition, names)
        case {"Fn::Equals": [left, right]}:
            return bool(_comparable(left, names) == _comparable(right, names))
        case {"Fn::Not": [condition]}:
            return not is_true(condition, names)
        case {"Fn::And": [*conditions]}:
            return all(is_true(each, names) for each in conditions)
        case {"Fn::Or": [*conditions]}:
            return any(is_true(each, names) for each in conditions)
    raise Unresolvable(f"{node!r} is not a condition")


def is_intrinsic(node: Any) -> bool:
    """Return whether `node` is a call of an intrinsic function, not a plain object."""
    if not isinstance(node, dict) or len(node) != 1:
        return False
    (name,) = node
    return name == "Ref" or (isinstance(name, str) and name.startswith("Fn::"))


def _resolve(node: Any, names: TemplateNames) -> Any:
    if is_intrinsic(node):
        ((name, argument),) = node.items()
        return _without_dynamic_references(_call(name, argument, names))
    if isinstance(node, dict):
        members = {name: _resolve(member, names) for name, member in node.items()}
        return {name: member for name, member in members.items() if member is not _NO_VALUE}
    if isinstance(node, list):
        return [item for item in (_resolve(item, names) for item in node) if item is not _NO_VALUE]
    return _without_dynamic_references(node)


def _without_dynamic_references(value: Any) -> Any:
    """Return a value as it is. Raises Unresolvable for a text that a deployment replaces."""
    if isinstance(value, str) and "{{resolve:" in value:
        raise Unresolvable("dynamic references ({{resolve:…}}) cannot be resolved on this computer")
    return value


def _call(name: str, argument: Any, names: TemplateNames) -> Any:
    match name, argument:
        case "Ref", "AWS::NoValue":
            return _NO_VALUE
        case "Ref", str(name):
            return _reference(name, names)
        case "Fn::GetAtt", str(path):
            return _attribute(path, names)
        case "Fn::GetAtt", [*parts]:
            return _attribute(".".join(_text(part, names) for part in parts), names)
        case "Fn::Sub", str(text):
            return _substitute(text, {}, names)
        case "Fn::Sub", [str(text), dict(local)]:
            return _substitute(text, local, names)
        case "Fn::If", [condition, then, otherwise]:
            return _resolve(then if holds(condition, names) else otherwise, names)
        case "Fn::Join", [str(delimiter), items]:
            return delimiter.join(_text(item, names) for item in _list(items, names))
        case "Fn::Split", [str(delimiter), text] if delimiter:
            return _text(text, names).split(delimiter)
        case "Fn::Select", [index, items]:
            return _select(_text(index, names), _list(items, names))
        case "Fn::FindInMap", [_, _, _]:
            return _find_in_map(argument, names)
        case "Fn::ImportValue" | "Fn::GetAZs" | "Fn::Transform", _:
            raise Unresolvable(f"{name} is only known in a deployment")
    raise Unresolvable(f"{name} with these arguments cannot be resolved on this computer")


def _text(node: Any, names: TemplateNames) -> str:
    value = _resolve(node, names)
    try:
        return scalar_text(value)
    except TypeError:
        raise Unresolvable(f"expected a string, not {type(value).__name__}") from None


def _list(node: Any, names: TemplateNames) -> list[Any]:
    value = _resolve(node, names)
    if not isinstance(value, list):
        raise Unresolvable(f"expected a list, not {type(value).__name__}")
    return value


def _reference(name: str, names: TemplateNames) -> Any:
    try:
        return _known(names.values[name])
    except KeyError:
        reason = f"{name} is neither a parameter nor a resource that exists under these conditions"
        raise Unresolvable(reason) from None


def _attribute(path: str, names: TemplateNames) -> str:
    try:
        return str(_known(names.attributes[path]))
    except KeyError:
        raise Unresolvable(f"the attribute {path} is only known in a deployment") from None


def _known(value: Any) -> Any:
    if isinstance(value, Unresolvable):
        raise value
    return value


def _substitute(text: str, local: Mapping[str, Any], names: TemplateNames) -> str:
    def variable(match: re.Match[str]) -> str:
        literal, name = match[1], match[2].strip()
        if literal:
            return f"${{{name}}}"
        if name in local:
            return _text(local[name], names)
        try:
            return _text(_known(names.values[name]), names)  # SAM has Function.Alias
        except KeyError:
            return _attribute(name, names) if "." in name else _reference(name, names)

    return VARIABLE.sub(variable, text)


def _select(index: str, items: list[Any]) -> Any:
    if not index.isdecimal() or int(index) >= len(items):
        raise Unresolvable(f"Fn::Select has no item {index}")
    return items[int(index)]


def _find_in_map(keys: list[Any], names: TemplateNames) -> Any:
    found: Any = names.mappings
    for key in keys:
        name = _text(key, names)
        if name not in found:
            raise Unresolvable(f"Fn::FindInMap finds no {name}")
        found = found[name]
    return found


def _comparable(node: Any, names: TemplateNames) -> Any:
    value = _resolve(node, names)
    # Parameters are strings: `!Equals [!Ref Count, 1]` compares "1" with 1.
    if isinstance(value, list):
        return [_comparable(item, names) for item in value]
    return value if isinstance(value, dict) else _text(value, names)
