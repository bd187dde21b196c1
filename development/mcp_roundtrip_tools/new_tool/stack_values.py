"""What a nested stack needs of template.yaml: parameters with their values, conditions and mappings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_roundtrip_tools.template.applications import FRONT_DOOR_STACK, NAME_IN_SUB, STACK_NAME


@dataclass
class StackValues:
    """The parameters of a nested stack, each with its value in template.yaml."""

    found: dict[str, Any] = field(default_factory=dict)

    def nested(self, value: Any) -> Any:
        """Return the value as a nested stack writes it, and note the parameters that it needs."""
        match value:
            case {"Ref": str(name)}:
                return {"Ref": self._parameter(name, value)}
            case {"Fn::GetAtt": [name, attribute]}:
                return {"Ref": self._parameter(joined(name, attribute), value)}
            case {"Fn::Sub": str(text)}:
                return {"Fn::Sub": NAME_IN_SUB.sub(self._in_sub, text)}
            case dict():
                return {name: self.nested(each) for name, each in value.items()}
            case list():
                return [self.nested(each) for each in value]
        return value

    def variables(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return environment variables as parameters, whose values template.yaml computes.

        A parameter has a value also where template.yaml sets no variable.
        """
        return {
            name: self._variable("".join(part.capitalize() for part in name.split("_")), value)
            if isinstance(value, dict)
            else value
            for name, value in variables.items()
        }

    def _variable(self, parameter: str, value: Mapping[str, Any]) -> Any:
        match value:
            case {"Fn::If": [condition, given, {"Ref": "AWS::NoValue"} as nothing]}:
                name = self._parameter(parameter, {"Fn::If": [condition, given, ""]})
                return {"Fn::If": [condition, {"Ref": name}, nothing]}
        return {"Ref": self._parameter(parameter, value)}

    def _in_sub(self, found: re.Match[str]) -> str:
        name, _, attribute = found[1].partition(".")
        if attribute:
            parameter = self._parameter(joined(name, attribute), {"Fn::GetAtt": [name, attribute]})
        else:
            parameter = self._parameter(name, {"Ref": name})
        return f"${{{parameter}}}"

    def _parameter(self, name: str, value: Any) -> str:
        if name == STACK_NAME:
            name = FRONT_DOOR_STACK
        if not name.startswith("AWS::"):
            self.found[name] = value
        return name


def joined(name: str, attribute: str) -> str:
    """Return the name of the parameter for an attribute of a resource."""
    return name + attribute.replace(".", "")


def used_conditions(document: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return the conditions that a value uses, and those that these use."""
    declared = document.get("Conditions", {})
    used: dict[str, Any] = {}
    waiting = [*_conditions_in(value)]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = declared[name]
            waiting += _conditions_in(declared[name])
    return {name: used[name] for name in declared if name in used}


def used_mappings(document: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return the mappings that a value uses, with the keys that it names."""
    used: dict[str, Any] = {}
    for each in _dicts_in(value):
        match each:
            case {"Fn::FindInMap": [str(mapping), str(key), *_]}:
                used.setdefault(mapping, {})[key] = document["Mappings"][mapping][key]
    return used


def _conditions_in(value: Any) -> Iterator[str]:
    for each in _dicts_in(value):
        match each:
            case {"Fn::If": [str(name), *_]} | {"Condition": str(name)}:
                yield name


def _dicts_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _dicts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _dicts_in(each)
