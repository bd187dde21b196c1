"""Nested stacks: tools behind the front door of template.yaml, in templates of their own.

CloudFormation allows 500 resources in a template. The functions of a nested stack have the Globals of
template.yaml, and each value that these need is a parameter, which `AWS::Serverless::Application` passes.
Everything above the resources of a nested stack is generated.

``python -m mcp_roundtrip_tools.new_tool.stacks`` (`make stacks`) generates it again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mcp_roundtrip_tools.new_tool.short_yaml import member, section
from mcp_roundtrip_tools.new_tool.stack_values import StackValues, used_conditions, used_mappings
from mcp_roundtrip_tools.new_tool.template_entry import append_entry, logical_id_prefix, render_entry
from mcp_roundtrip_tools.template.applications import FRONT_DOOR_STACK, STACK_NAME
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load, parse

TEMPLATE = Path("template.yaml")
STACKS = Path("stacks")

_IN_A_STACK = {
    f"${{{STACK_NAME}}}": f"${{{FRONT_DOOR_STACK}}}",
    "CodeUri: functions/": "CodeUri: ../../functions/",
    "!GetAtt UndeliveredTasks.Arn": "!Ref UndeliveredTasksArn",
    # SAM publishes a version when the template changes. A new layer is only another value of a parameter.
    "settings ${Settings}": "settings ${Settings} ${RoundtripLayer}",
}
"""How entries differ in a nested stack."""

_HEAD = """\
# Tools behind the front door of ../../template.yaml, which passes the values of the parameters.
# `make stacks` writes everything above Resources.
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Description: Stateless MCP tools (mcp-roundtrip) in a nested stack

Metadata: {cfn-lint: {config: {ignore_checks: [W2001, W3011, W8001]}}}  # unused: for later tools
"""


def nested_template(stack: str) -> Path:
    """Return the path of a nested stack's template in the project."""
    return STACKS / stack / TEMPLATE


def add_stack(text: str, document: Mapping[str, Any], stack: str) -> str:
    """Return template.yaml with a nested stack. Raises TemplateError."""
    return append_entry(text, _application(document, stack))


def render_entry_of_stack(name: str, *, tasks: bool) -> str:
    """Return the resources of a tool in a nested stack."""
    entry = render_entry(name, tasks=tasks)
    for old, new in _IN_A_STACK.items():
        entry = entry.replace(old, new)
    return entry


def render_head(document: Mapping[str, Any]) -> str:
    """Return everything of a nested stack up to the line `Resources:`."""
    sections, values = _sections(document)
    parameters = {name: {"Type": _type(document, name)} for name in sorted(values)}
    parts = (section(name, each) for name, each in {"Parameters": parameters, **sections}.items())
    return "\n".join([_HEAD, *parts, "Resources:\n"])


def refresh(project: Path) -> dict[Path, str]:
    """Return the templates with nested stacks that fit template.yaml. Raises TemplateError."""
    template = project / TEMPLATE
    document, text = load(template), template.read_text("utf-8")
    files = {}
    for nested in sorted((project / STACKS).glob(f"*/{TEMPLATE}")):
        resources = nested.read_text("utf-8").partition("\nResources:\n")[2]
        files[nested] = render_head(document) + resources
        entry = _application(document, nested.parent.name)
        written = re.compile(rf"^{re.escape(entry.partition('    ')[0])}(?:    .*\n)+", re.MULTILINE)
        if not written.search(text):
            raise TemplateError(f"{nested}: {TEMPLATE} has no such nested stack")
        text = written.sub(lambda _, entry=entry: entry, text)  # type: ignore[misc]
    return {**files, template: text} if files else {}


def _application(document: Mapping[str, Any], stack: str) -> str:
    _, values = _sections(document)
    lines = [
        f"  # {STACKS}/{stack}",
        f"  {logical_id_prefix(stack)}Stack:",
        "    Type: AWS::Serverless::Application",
        "    Properties:",
        f"      Location: {nested_template(stack)}",
        "      Parameters:",
    ]
    passed = (member(name, _as_text(document, each), " " * 8) for name, each in sorted(values.items()))
    return "\n".join(lines) + "\n" + "".join(passed)


def _sections(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sections of a nested stack, and its parameters with their values in template.yaml."""
    function = dict(document["Globals"]["Function"])
    function["Layers"] = _whole_lists(function["Layers"])
    variables = function.pop("Environment", {}).get("Variables", {})
    entry = parse("Resources:\n" + render_entry("new_tool", tasks=True))["Resources"]
    values = StackValues()
    passed = values.variables(variables)
    conditions = used_conditions(document, [function, entry, passed])
    sections = {
        "Mappings": used_mappings(document, function),
        "Conditions": values.nested(conditions),
        "Globals": {"Function": {**values.nested(function), "Environment": {"Variables": passed}}},
    }
    values.nested(entry)
    own = logical_id_prefix("new_tool")
    found = {name: each for name, each in values.found.items() if not name.startswith(own)}
    return {name: each for name, each in sections.items() if each}, found


def _whole_lists(items: list[Any]) -> Any:
    """Return a list whose optional item is in one of two lists instead.

    `sam build` resolves no list with AWS::NoValue: it then takes the parameter RoundtripLayer for a resource.
    """
    match items:
        case [*others, {"Fn::If": [condition, item, {"Ref": "AWS::NoValue"}]}]:
            return {"Fn::If": [condition, [*others, item], others]}
    return items


def _is_list(document: Mapping[str, Any], name: str) -> bool:
    return "List" in str(document["Parameters"].get(name, {}).get("Type", ""))


def _type(document: Mapping[str, Any], name: str) -> str:
    return "CommaDelimitedList" if _is_list(document, name) else "String"


def _as_text(document: Mapping[str, Any], value: Any) -> Any:
    """Return a value of a parameter: a list is joined, because parameters of nested stacks are text."""
    match value:
        case {"Ref": str(name)} if _is_list(document, name):
            return {"Fn::Join": [",", value]}
    return value


def main() -> int:
    """Write the nested stacks of the current project again."""
    try:
        for path, text in refresh(Path()).items():
            path.write_text(text, encoding="utf-8")
    except (TemplateError, OSError, yaml.YAMLError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
