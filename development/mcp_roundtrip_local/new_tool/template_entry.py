"""Add a tool to template.yaml by copying the entry of a simple tool, and to the edge's table of tools.

The text is copied, because a parser drops comments; the parsed nodes only provide positions. The logical ids
of a tool's resources have a common prefix: `FindOrders` for `find_orders`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from mcp_roundtrip_local.template.model import TemplateError
from mcp_roundtrip_local.template.reader import FUNCTION

SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"

_PAIR = re.compile(r'"([^"]+)":\s*"[^"]*"')
_CALLED_BY_NAME = re.compile(r'"tools/call": \{(\s*)[^{}]*"(?=\s*\})')


@dataclass(frozen=True, slots=True)
class _Copy:
    """Text to copy, as offsets: from `start` to `end`; `at` is the end of the enclosing node."""

    start: int
    end: int
    at: int
    within: int
    """The start of the enclosing node."""
    before: str = ""
    """The text inserted before the copy."""


def logical_id_prefix(name: str) -> str:
    """Return the prefix of the logical ids of a tool's resources."""
    return "".join(part.capitalize() for part in name.split("_"))


def find_copyable_tool(document: Mapping[str, Any]) -> str:
    """Return the folder of the first tool whose only variable is its name. Raises TemplateError."""
    for name, resource in document["Resources"].items():
        if resource["Type"] == FUNCTION:
            properties = resource["Properties"]
            folder = str(properties["CodeUri"]).rstrip("/").rpartition("/")[2]
            variables = properties.get("Environment", {}).get("Variables", {})
            paths = [event["Properties"].get("Path") for event in properties.get("Events", {}).values()]
            if (
                name == logical_id_prefix(folder) + "Function"
                and paths == [f"/tools/{folder}"]
                and [*variables] == [SERVICE_NAME]
            ):
                return folder
    raise TemplateError("it has no tool whose entry can be copied: each has variables of its own")


def find_conflict(document: Mapping[str, Any], name: str) -> str | None:
    """Return the logical id or text of the template that conflicts with a tool of this name, if any."""
    found = next(iter(_ids(document, logical_id_prefix(name))), None)
    return found or next((text for text in _texts(document) if _mention_pattern(name).search(text)), None)


def add_entry(text: str, document: Mapping[str, Any], model: str, name: str) -> str:
    """Return the template's text with a copy of every part of the tool `model`, renamed to `name`.

    `document` is the parsed template. Raises TemplateError if a part of `model` cannot be copied.
    """
    # SAM appends to a function's id in generated resources: WeatherFunctionAliaslive.
    ids = re.compile(
        rf"\b{logical_id_prefix(model)}(?=(?:{'|'.join(_suffixes(document, model))})(?![a-z0-9]))"
    )

    def mentions(value: str) -> bool:
        return bool(ids.search(value) or _mention_pattern(model).search(value))

    def renamed(copied: str) -> str:
        copied = re.sub(rf"(?m)^(\s*# {model}):.*$", r"\1", copied)  # the description is not the new tool's
        return re.sub(rf"(?<!\w){model}(?!\w)", name, ids.sub(logical_id_prefix(name), copied))

    text = text.removesuffix("\n") + "\n"
    root = yaml.compose(text, yaml.SafeLoader)
    assert root is not None  # `document` has Resources
    copies = {copy.start: copy for copy in _Finder(text, model, mentions).copies(root, None)}
    outermost = [
        copy
        for copy in copies.values()
        if not any(other.start < copy.start and copy.end <= other.end for other in copies.values())
    ]
    # From the end, so that offsets stay valid. Copies to the same place are inserted innermost first.
    for copy in sorted(outermost, key=lambda copy: (copy.at, -copy.within, copy.start), reverse=True):
        text = text[: copy.at] + copy.before + renamed(text[copy.start : copy.end]) + text[copy.at :]
    return text


def add_call(text: str, name: str) -> str:
    """Return the edge's text with the tool `name` added at the end of its table of tools.

    Without that table the text is unchanged: the edge sends unknown tools to the front door.
    """
    return _CALLED_BY_NAME.sub(lambda calls: f'{calls[0]},{calls[1]}"{name}": "{name}"', text, count=1)


def _ids(document: Mapping[str, Any], own: str) -> Iterator[str]:
    """Yield the logical ids with this prefix. WeatherReportRole is not weather's if weather_report exists."""
    functions = (name for name, each in document["Resources"].items() if each["Type"] == FUNCTION)
    prefixes = {own, *(name.removesuffix("Function") for name in functions)}
    for section in document.values():
        for name in section if isinstance(section, dict) else ():
            begun_with = [each for each in prefixes if re.match(rf"{each}(?![a-z0-9])", name)]
            if max(begun_with, key=len, default=None) == own:
                yield name


def _suffixes(document: Mapping[str, Any], tool: str) -> set[str]:
    return {
        re.escape(found.removeprefix(logical_id_prefix(tool)))
        for found in _ids(document, logical_id_prefix(tool))
    }


def _mention_pattern(tool: str) -> re.Pattern[str]:
    """Return a pattern for values that are a tool's name, or contain it in a path or JSON."""
    return re.compile(rf'(?:^|[/"]){tool}(?:$|[/"])')


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from document
        document = list(document.values())
    if isinstance(document, list):
        for item in document:
            yield from _texts(item)
    elif isinstance(document, str):
        yield document


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the parts to copy: members of mappings, items of lists, and pairs in a JSON object."""

    text: str
    model: str
    mentions: Callable[[str], bool]

    def copies(self, node: yaml.Node, item: _Copy | None) -> Iterator[_Copy]:
        """Yield the copies for the mentions in `node`; `item` is the innermost enclosing list item."""
        if isinstance(node, yaml.MappingNode):
            yield from self._of_mapping(node, item)
        elif isinstance(node, yaml.SequenceNode):
            for each in node.value:
                yield from self.copies(each, item if node.flow_style else self._item(node, each))
        elif self.mentions(node.value):
            found = self._pair(node) or item
            if found is None:
                raise TemplateError(f"line {node.start_mark.line + 1} cannot be copied for another tool")
            yield found

    def _of_mapping(self, node: yaml.MappingNode, item: _Copy | None) -> Iterator[_Copy]:
        start = self._line(node.start_mark.index)
        for key, value in node.value:
            # A member begins at the end of the previous one, with the comments above it.
            end = self._next_line(_end(value))
            if self.mentions(key.value) and not node.flow_style:
                yield _Copy(start, end, self._next_line(_end(node)), node.start_mark.index)
            else:
                yield from self.copies(value, item)
            start = end

    def _item(self, node: yaml.SequenceNode, each: yaml.Node) -> _Copy:
        start, end = self._line(each.start_mark.index), self._next_line(_end(each))
        return _Copy(start, end, self._next_line(_end(node)), node.start_mark.index)

    def _pair(self, node: yaml.Node) -> _Copy | None:
        pairs = list(_PAIR.finditer(self.text, node.start_mark.index, node.end_mark.index))
        for pair in pairs:
            if pair[1] == self.model:
                last = pairs[-1]
                line = self._line(last.start())
                spaces = len(self.text[line:]) - len(self.text[line:].lstrip(" "))
                before = ",\n" + " " * spaces
                return _Copy(pair.start(), pair.end(), last.end(), node.start_mark.index, before)
        return None

    def _line(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def _next_line(self, offset: int) -> int:
        return self.text.find("\n", offset) + 1


def _end(node: yaml.Node) -> int:
    """Return the end of a node's text. The end mark of a block comes after the comments that follow it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    block_scalar = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return int(node.end_mark.index) - (1 if block_scalar else 0)
