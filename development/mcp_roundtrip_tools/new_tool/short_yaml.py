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


def member(name: str, value: Any, indent: str) -> str:
    """Return a member of a mapping with its end of line. Long lists of a function have a line per item."""
    key = f"{indent}{one_line(name)}: "
    line = f"{key}{one_line(value)}\n"
    tag = _tag(value) if isinstance(value, dict) else None
    if len(line) <= _WIDTH or tag is None or not isinstance(items := next(iter(value.values())), list):
        return line
    return f"{key}{tag}\n" + "".join(f"{indent}  - {one_line(each)}\n" for each in items)


def section(name: str, members: Any) -> str:
    """Return a section of a template, with each member on one line if it fits."""
    return f"{name}:\n" + "".join(_members(members, "  "))


def _members(members: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in members.items():
        line = f"{indent}{one_line(name)}: {one_line(value)}\n"
        if len(line) <= _WIDTH or not isinstance(value, dict) or _tag(value):
            lines.append(member(name, value, indent))
        else:
            lines += [f"{indent}{one_line(name)}:\n", *_members(value, indent + "  ")]
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
