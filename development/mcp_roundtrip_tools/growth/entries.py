"""The functions of an application in template.yaml, and edits of their entries that keep its layout."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS
from mcp_roundtrip_tools.catalog.edge_routes import logical_id_prefix
from mcp_roundtrip_tools.template.model import TemplateError, handler_module
from mcp_roundtrip_tools.template.yaml_reader import SafeLoader, parse

TEMPLATE = Path("template.yaml")

_SERVER = re.compile(r"^(?:from|import) mcp_roundtrip\b|\.lambda_handler\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """A function with tools. `worker` is the logical id of the function that runs its tasks, if any."""

    logical_id: str
    module: Path
    worker: str | None = None


def tool_functions(project: Path, document: Mapping[str, Any]) -> dict[str, ToolFunction]:
    """Return the functions by the names of their folders, without the front door and workers."""
    found: dict[str, tuple[str, Path]] = {}
    workers: dict[Path, str] = {}
    for logical_id, properties in functions_of(document).items():
        module = _module(project, properties)
        if module is None or module.parent == project / FUNCTIONS / FRONT_DOOR:
            continue
        if str(properties.get("Handler", "")).endswith(".worker"):
            workers[module] = logical_id
        else:
            found[module.parent.name] = logical_id, module
    return {
        folder: ToolFunction(logical_id, module, workers.get(module))
        for folder, (logical_id, module) in found.items()
    }


def select_function(functions: Mapping[str, ToolFunction], folder: str | None) -> ToolFunction:
    """Return the function of this folder, or the only one. Raises TemplateError."""
    listed = ", ".join(sorted(functions))
    if not functions:
        raise TemplateError("no function imports mcp_roundtrip or has `handler = server.lambda_handler`")
    if folder is None and len(functions) > 1:
        raise TemplateError(f"several functions can get the tool; name one with FUNCTION=…: {listed}")
    if folder is not None and folder not in functions:
        raise TemplateError(f"no function {folder!r} can get the tool, only: {listed}")
    return functions[folder or listed]


def functions_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the properties of the template's functions by logical id, with those of its Globals."""
    shared = ((document.get("Globals") or {}).get("Function")) or {}
    return {
        name: {**shared, **(resource.get("Properties") or {})}
        for name, resource in document["Resources"].items()
        if isinstance(resource, dict) and resource.get("Type") == "AWS::Serverless::Function"
    }


def _module(project: Path, properties: Mapping[str, Any]) -> Path | None:
    code, handler = properties.get("CodeUri"), properties.get("Handler", "app.handler")
    if not isinstance(code, str) or not isinstance(handler, str):
        return None
    path = project / code / handler_module(handler)
    is_server = path.is_file() and _SERVER.search(path.read_text("utf-8"))
    return path if is_server else None


class TemplateText:
    """The text of a template, which `load` can read, with edits at paths of names.

    They raise TemplateError for a missing place.
    """

    def __init__(self, text: str) -> None:
        self.text = text.removesuffix("\n") + "\n"
        try:
            root = yaml.compose(self.text, SafeLoader)
        except yaml.YAMLError as error:  # the copy of an anchor is a second one
            raise TemplateError(str(error)) from None
        assert root is not None
        self._root = root

    def has(self, *path: str) -> bool:
        """Return whether there is a value at this path."""
        return self._find(path) is not None

    def member(self, *path: str) -> list[str]:
        """Return the lines of a member without their common indentation; none if it does not exist."""
        if self._find(path) is None:
            return []
        key, value = self._existing(path)
        column = key.start_mark.column
        lines = self.text.splitlines()[key.start_mark.line : _last_line(value) + 1]
        return [line[column:] for line in lines]

    def append(self, lines: Sequence[str], *path: str) -> None:
        """Append members or items to the value at this path."""
        _, node = self._existing(path)
        if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
            raise TemplateError(f"{'.'.join(path)}: write it in block style, one member in each line")
        self._insert(_last_line(node) + 1, lines, node.start_mark.column)

    def insert_after(self, lines: Sequence[str], *path: str) -> None:
        """Insert members after the one at this path."""
        key, value = self._existing(path)
        self._insert(_last_line(value) + 1, lines, key.start_mark.column)

    def insert_before(self, lines: Sequence[str], *path: str) -> None:
        """Insert members before the one at this path and its comments."""
        key, _ = self._existing(path)
        before, line = self.text.splitlines(), key.start_mark.line
        while before[line - 1].lstrip().startswith("#"):
            line -= 1
        self._insert(line, lines, key.start_mark.column)

    def replace(self, value: str, *path: str) -> None:
        """Replace a value that is written in one line, such as ``!Ref Name``. A comment behind it stays."""
        _, node = self._existing(path)
        start, end = node.start_mark, node.end_mark
        if start.line != end.line:
            raise TemplateError(f"{'.'.join(path)}: write it in one line")
        self._set(self.text[: start.index] + value + self.text[end.index :])

    def _find(self, path: Sequence[str]) -> tuple[yaml.Node, yaml.Node] | None:
        found: tuple[yaml.Node, yaml.Node] | None = (self._root, self._root)
        for name in path:
            members = found[1].value if found and isinstance(found[1], yaml.MappingNode) else ()
            found = next(((key, value) for key, value in members if key.value == name), None)
        return found

    def _existing(self, path: Sequence[str]) -> tuple[yaml.Node, yaml.Node]:
        found = self._find(path)
        if found is None:
            raise TemplateError(f"it has no {'.'.join(path)}")
        if found[1].start_mark.index < found[0].start_mark.index:  # the value is written elsewhere
            raise TemplateError(f"{'.'.join(path)}: write it without a YAML alias")
        return found

    def _insert(self, line: int, added: Sequence[str], column: int) -> None:
        lines = self.text.splitlines()
        indented = [" " * column + each if each else each for each in added]
        self._set("\n".join([*lines[:line], *indented, *lines[line:]]) + "\n")

    def _set(self, text: str) -> None:
        changed = TemplateText(text)
        self.text, self._root = changed.text, changed._root


def _last_line(node: yaml.Node) -> int:
    """Return the number of the last line of a value. The end that the parser reports is after comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(node, yaml.MappingNode) else last)
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return max(node.start_mark.line, node.end_mark.line - 1)
    return int(node.end_mark.line)


RESOURCES = ("Function", "Role", "WorkerFunction", "Tasks")
"""What the logical ids of a function's resources end with."""

STACK = "${AWS::StackName}_"
"""What the names of functions begin with: the front door and the policies of Platform find them by it."""

ANSWERS = ("Resources", "Endpoint", "Properties", "Parameters", "Function")
"""The parameter that names the function that answers at the endpoint."""

METADATA = "  Metadata:\n    BuildMethod: makefile\n    ContextPath: functions\n"
"""How sam builds functions with functions/Makefile. Otherwise it installs their requirements."""

NOT_THE_WORKERS = frozenset({"FunctionName", "Handler", "Environment", "Events"})
"""Properties of a function that its worker does not copy."""


def find_conflict(document: Mapping[str, Any], name: str) -> str | None:
    """Return a logical id of the template that conflicts with a function of this name, if any."""
    own = {logical_id_prefix(name) + suffix for suffix in RESOURCES}
    ids = (each for section in document.values() if isinstance(section, dict) for each in section)
    return next((each for each in ids if each in own), None)


def add_function(template: TemplateText, name: str, *, with_makefile: bool) -> None:
    """Append a function and its role, with path and boundary of another role. Raises TemplateError."""
    _need_platform(template)
    if not template.has("Globals", "Function", "Environment", "Variables", "MCP_SETTINGS"):
        raise TemplateError(
            "a function of its own needs MCP_SETTINGS in Globals, as mcp-roundtrip new writes it"
        )
    prefix = logical_id_prefix(name)
    rules = _rules_of_roles(template)
    template.append(["", *_entry("function", prefix, name, with_makefile)], "Resources")
    template.append(rules, "Resources", f"{prefix}Role", "Properties")


def add_front_door(template: TemplateText, first: str, *, with_makefile: bool) -> None:
    """Insert the front door before `first`, and lead the endpoint to it. Raises TemplateError."""
    rules = _rules_of_roles(template)
    entry = _entry("front_door", "FrontDoor", "front_door", with_makefile)
    template.insert_before([*entry, ""], "Resources", first)
    template.append(rules, "Resources", "FrontDoorRole", "Properties")
    template.replace("!Ref FrontDoorFunction.Alias", *ANSWERS)


def add_worker(template: TemplateText, function: ToolFunction) -> None:
    """Insert a worker, with its function's properties and variables, and its queue. Raises TemplateError."""
    _need_platform(template)
    document = parse(template.text)
    name, role = name_of(document, function.logical_id), _role(document, function.logical_id)
    prefix = function.logical_id.removesuffix("Function")
    if found := document["Resources"].keys() & {f"{prefix}WorkerFunction", f"{prefix}Tasks"}:
        raise TemplateError(f"it has {min(found)}, but no function whose handler is the worker of {name}")
    properties = ("Resources", function.logical_id, "Properties")
    worker = _worker(template, function, prefix, name)
    template.insert_after(worker, "Resources", function.logical_id)
    version = f"!Ref {prefix}WorkerFunction.Version"
    # A new version of the worker is one of the function. It changes with the settings, too.
    if template.has(*properties, "VersionDescription"):
        template.replace(version, *properties, "VersionDescription")
    variables = [
        "# The version of this deployment: it runs the tasks that it creates to their end.",
        f"MCP_TASK_WORKER: {version}",
        f"MCP_TASK_QUEUE: !GetAtt {prefix}Tasks.Outputs.Url",
    ]
    if template.has(*properties, "Environment", "Variables"):
        template.append(variables, *properties, "Environment", "Variables")
    else:
        template.append(["Environment:", "  Variables:", *(f"    {each}" for each in variables)], *properties)
    policies = ("Resources", role, "Properties", "ManagedPolicyArns")
    text = "\n".join(template.member(*policies))
    needed = [f"- !GetAtt Platform.Outputs.{each}" for each in ("ParkedCallsPolicy", "TaskPolicy")]
    template.append([line for line in needed if line not in text], *policies)


def name_of(document: Mapping[str, Any], logical_id: str) -> str:
    """Return the name of a function without that of the stack. Raises TemplateError."""
    match functions_of(document)[logical_id].get("FunctionName"):
        case {"Fn::Sub": str(text)} if text.startswith(STACK) and "$" not in text.removeprefix(STACK):
            return text.removeprefix(STACK)
    raise TemplateError(
        f"{logical_id} needs `FunctionName: !Sub {STACK}…`, because policies find functions by their names"
    )


def _role(document: Mapping[str, Any], logical_id: str) -> str:
    match functions_of(document)[logical_id].get("Role"):
        case {"Fn::GetAtt": [str(role), "Arn"]} if role in document["Resources"]:
            return role
    raise TemplateError(f"{logical_id} needs `Role: !GetAtt ….Arn` with a role of this template")


def _need_platform(template: TemplateText) -> None:
    if not template.has("Resources", "Platform"):
        raise TemplateError(
            "it has no Platform, which has the API, the keys and the task table "
            "(docs/guides/existing-application.md)"
        )


def _worker(template: TemplateText, function: ToolFunction, prefix: str, name: str) -> list[str]:
    """Return the resources of a worker."""
    entry = TemplateText("Resources:\n" + _text("worker", prefix, name))
    worker, own = ("Resources", f"{prefix}WorkerFunction"), ("Resources", function.logical_id)
    resource = parse(template.text)["Resources"][function.logical_id]
    entry.replace(f"{function.module.stem}.worker", *worker, "Properties", "Handler")
    if any(line.lstrip().startswith("<<:") for line in template.member(*own)):
        raise TemplateError(f"{'.'.join(own)}: write it without a YAML alias")
    copied = [
        line
        for property_name in resource["Properties"]
        if property_name not in NOT_THE_WORKERS and not entry.has(*worker, "Properties", property_name)
        for line in template.member(*own, "Properties", property_name)
    ]
    entry.insert_after(copied, *worker, "Properties", "FunctionName")
    variables = ("Properties", "Environment", "Variables")
    for variable in (resource["Properties"].get("Environment") or {}).get("Variables") or {}:
        entry.append(template.member(*own, *variables, variable), *worker, *variables)
    for attribute in ("Metadata", "IgnoreGlobals", "Condition"):
        entry.insert_after(template.member(*own, attribute), *worker, "Type")
    entry.insert_after(template.member(*own, "Condition"), "Resources", f"{prefix}Tasks", "Type")
    return dedent(entry.text.removeprefix("Resources:\n")).splitlines()


def _rules_of_roles(template: TemplateText) -> list[str]:
    """Return the path and the permissions boundary of the first role of a function that has one."""
    document = parse(template.text)
    for properties in functions_of(document).values():
        match properties.get("Role"):
            case {"Fn::GetAtt": [str(role), "Arn"]}:
                path = ("Resources", role, "Properties")
                rules = [template.member(*path, each) for each in ("Path", "PermissionsBoundary")]
                if any(rules):
                    return [line for rule in rules for line in rule]
    return []


def _entry(file: str, prefix: str, name: str, with_makefile: bool) -> list[str]:
    text = dedent(_text(file, prefix, name))
    return (text if with_makefile else text.replace(METADATA, "")).splitlines()


def _text(file: str, prefix: str, name: str) -> str:
    """Return the resources of a function named new_tool with another name."""
    text = Path(__file__).with_name(f"{file}.yaml").read_text("utf-8")
    return text.replace("NewTool", prefix).replace("new_tool", name)
