"""Nested stacks whose tools are behind this template's front door (docs/guides/adding-a-tool.md).

Only applications with the parameter FrontDoorStack are read: their functions have this template's Globals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load

APPLICATION = "AWS::Serverless::Application"

FRONT_DOOR_STACK = "FrontDoorStack"
"""The parameter with the name of the stack that has the front door."""

STACK_NAME = "AWS::StackName"

FOLDERS = ("CodeUri", "ContentUri")

NAME_IN_SUB = re.compile(r"\$\{([^!}][^}]*)\}")
"""A name in the text of Fn::Sub."""


def nested_templates(document: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    """Return the templates of the nested stacks of the template in `folder`."""
    return tuple(folder / properties["Location"] for properties in _applications(document).values())


def with_nested_stacks(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the template in `folder` with the resources of its nested stacks. Raises TemplateError."""
    resources = dict(document["Resources"])
    for name, properties in _applications(document).items():
        location = Path(properties["Location"])
        nested = load(folder / location)["Resources"]
        if twice := resources.keys() & nested.keys():
            raise TemplateError(f"{name}: {', '.join(sorted(twice))}: also in another template")
        for own, resource in nested.items():
            resources[own] = _moved(_replaced(resource, properties["Parameters"]), location.parent)
    return {**document, "Resources": resources}


def is_behind_front_door(resource: Mapping[str, Any]) -> bool:
    """Return whether a resource is a nested stack whose tools are behind this template's front door."""
    parameters = (resource.get("Properties") or {}).get("Parameters")
    return resource.get("Type") == APPLICATION and FRONT_DOOR_STACK in (parameters or ())


def _applications(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        name: resource["Properties"]
        for name, resource in document["Resources"].items()
        if isinstance(resource, dict) and is_behind_front_door(resource)
    }


def _replaced(value: Any, parameters: Mapping[str, Any]) -> Any:
    """Return the value with the parameters of a nested stack replaced by their values."""
    match value:
        case {"Ref": str(name)} if name in parameters:
            return parameters[name]
        case {"Fn::Sub": str(text)}:
            return {"Fn::Sub": NAME_IN_SUB.sub(lambda found: _in_sub(found, parameters), text)}
        case dict():
            return {name: _replaced(each, parameters) for name, each in value.items()}
        case list():
            return [_replaced(each, parameters) for each in value]
    return value


def _in_sub(found: re.Match[str], parameters: Mapping[str, Any]) -> str:
    match parameters.get(found[1]):
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
    return found[0]


def _moved(resource: Any, folder: Path) -> Any:
    """Return a resource whose folders are relative to the template with the front door."""
    properties = resource.get("Properties") or {}
    folders = {name: properties[name] for name in FOLDERS if isinstance(properties.get(name), str)}
    moved = {name: os.path.normpath(folder / path) for name, path in folders.items()}
    return {**resource, "Properties": {**properties, **moved}}
