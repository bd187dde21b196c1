"""Resolve CloudFormation's intrinsic functions.

Source: AWS CloudFormation user guide, "Intrinsic function reference". Nodes have the long form
(``{"Fn::Sub": …}``); `yaml_reader` converts the short tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip_tools.template.yaml_reader import scalar_text

VARIABLE = re.compile(r"\$\{(!?)([^{}]+)\}")
_NO_VALUE = object()


class Unresolvable(Exception):
    """The value depends on something that only a deployment knows."""


@dataclass(frozen=True, slots=True)
class TemplateNames:
    """The values that names refer to: `values` for Ref, `attributes` for GetAtt by ``Resource.Attribute``.

    A value may be Unresolvable, with its reason.
    """

    values: Mapping[str, Any]
    attributes: Mapping[str, Any]
    mappings: Mapping[str, Any]
    conditions: Mapping[str, Any]


def resolve(node: Any, names: TemplateNames) -> Any:
    """Return the value of `node` with intrinsic functions resolved; None for AWS::NoValue.

    Raises Unresolvable with the reason.
    """
    value = _resolve(node, names)
    return None if value is _NO_VALUE else value


def holds(condition: str, names: TemplateNames) -> bool:
    """Return whether the named condition is true. Raises Unresolvable."""
    if condition not in names.conditions:
        raise Unresolvable(f"there is no condition {condition}")
    return is_true(names.conditions[condition], names)


def is_true(node: Any, names: TemplateNames) -> bool:
    """Evaluate a condition function. Raises Unresolvable."""
    match node:
        case {"Condition": condition}:
            return holds(str(condition), names)
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
        if name in _CONDITIONS:
            return is_true(node, names)
        if name not in _FUNCTIONS:
            raise Unresolvable(f"{name} cannot be resolved on this computer")
        return _FUNCTIONS[name](argument, names)
    if isinstance(node, dict):
        members = {name: _resolve(member, names) for name, member in node.items()}
        return {name: member for name, member in members.items() if member is not _NO_VALUE}
    if isinstance(node, list):
        return [item for item in (_resolve(item, names) for item in node) if item is not _NO_VALUE]
    if isinstance(node, str) and "{{resolve:" in node:
        raise Unresolvable("dynamic references ({{resolve:…}}) cannot be resolved on this computer")
    return node


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


def _arguments(node: Any, count: int, function: str) -> list[Any]:
    if not isinstance(node, list) or len(node) != count:
        raise Unresolvable(f"{function} takes a list of {count}")
    return node


def _ref(name: Any, names: TemplateNames) -> Any:
    if name == "AWS::NoValue":
        return _NO_VALUE
    try:
        return _known(names.values[name])
    except KeyError:
        reason = f"{name} is neither a parameter nor a resource that exists under these conditions"
        raise Unresolvable(reason) from None


def _get_att(argument: Any, names: TemplateNames) -> str:
    path = argument if isinstance(argument, str) else ".".join(_text(part, names) for part in argument)
    try:
        return str(_known(names.attributes[path]))
    except KeyError:
        raise Unresolvable(f"the attribute {path} is only known in a deployment") from None


def _known(value: Any) -> Any:
    if isinstance(value, Unresolvable):
        raise value
    return value


def _sub(argument: Any, names: TemplateNames) -> str:
    text, local = (argument, {}) if isinstance(argument, str) else _arguments(argument, 2, "Fn::Sub")

    def variable(match: re.Match[str]) -> str:
        literal, name = match[1], match[2].strip()
        if literal:
            return f"${{{name}}}"
        if name in local:
            return _text(local[name], names)
        try:
            return _text(_known(names.values[name]), names)  # SAM has Function.Alias
        except KeyError:
            return _get_att(name, names) if "." in name else _ref(name, names)

    if not isinstance(text, str):
        raise Unresolvable("Fn::Sub takes a string")
    return VARIABLE.sub(variable, text)


def _if(argument: Any, names: TemplateNames) -> Any:
    condition, then, otherwise = _arguments(argument, 3, "Fn::If")
    return _resolve(then if holds(condition, names) else otherwise, names)


def _join(argument: Any, names: TemplateNames) -> str:
    delimiter, items = _arguments(argument, 2, "Fn::Join")
    return str(delimiter).join(_text(item, names) for item in _list(items, names))


def _split(argument: Any, names: TemplateNames) -> list[str]:
    delimiter, text = _arguments(argument, 2, "Fn::Split")
    return _text(text, names).split(str(delimiter))


def _select(argument: Any, names: TemplateNames) -> Any:
    index, items = _arguments(argument, 2, "Fn::Select")
    try:
        return _list(items, names)[int(_text(index, names))]
    except (ValueError, IndexError):
        raise Unresolvable("Fn::Select has no item of that index") from None


def _find_in_map(argument: Any, names: TemplateNames) -> Any:
    found: Any = names.mappings
    for key in _arguments(argument, 3, "Fn::FindInMap"):
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


_FUNCTIONS: dict[str, Callable[[Any, TemplateNames], Any]] = {
    "Ref": _ref,
    "Fn::GetAtt": _get_att,
    "Fn::Sub": _sub,
    "Fn::If": _if,
    "Fn::Join": _join,
    "Fn::Split": _split,
    "Fn::Select": _select,
    "Fn::FindInMap": _find_in_map,
}
_CONDITIONS = frozenset({"Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"})
