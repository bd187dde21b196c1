"""Write YAML with CloudFormation's short tags: ``{"Fn::Sub": x}`` becomes ``!Sub x``."""

from __future__ import annotations

import re
from typing import Any

import yaml

_UNLIMITED = 10_000

_QUOTED_NAME = re.compile(r"(!(?:Ref|GetAtt|Condition)) '([\w.:]+)'")

_WIDTH = 120


def one_line(value: Any) -> str:
    """Return a value as YAML on one line."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=_UNLIMITED)
    return _QUOTED_NAME.sub(r"\1 \2", text.removesuffix("\n").removesuffix("\n..."))


def section(name: str, members: Any) -> str:
    """Return a section of a template, with each member on one line if it fits."""
    return f"{name}:\n" + "".join(_members(members, "  "))


def _members(members: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in members.items():
        line = f"{indent}{name}: {one_line(value)}\n"
        if len(line) <= _WIDTH or not isinstance(value, dict) or _tag(value):
            lines.append(line)
        else:
            lines += [f"{indent}{name}:\n", *_members(value, indent + "  ")]
    return lines


def _tag(value: dict[str, Any]) -> str | None:
    if len(value) == 1:
        [name] = value
        if name in ("Ref", "Condition"):
            return f"!{name}"
        if name.startswith("Fn::"):
            return f"!{name.removeprefix('Fn::')}"
    return None


class _Dumper(yaml.SafeDumper):
    """A SafeDumper that writes functions of CloudFormation as tags, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(dumper: _Dumper, value: dict[str, Any]) -> yaml.Node:
    tag = _tag(value)
    if tag is None:
        return dumper.represent_dict(value)
    [argument] = value.values()
    if tag == "!GetAtt":
        argument = ".".join(argument)
    if isinstance(argument, list):
        return dumper.represent_sequence(tag, argument)
    if isinstance(argument, dict):
        return dumper.represent_mapping(tag, argument)
    return dumper.represent_scalar(tag, str(argument))


_Dumper.add_representer(dict, _represent)
