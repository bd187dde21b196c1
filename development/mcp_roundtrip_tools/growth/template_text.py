"""Edit template.yaml as text, so that its comments and its layout stay.

YAML's parser finds where each value begins and ends. Lines are inserted with the indentation of their
neighbours. Values in flow style, such as ``{A: 1}``, cannot be extended.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import SafeLoader


class TemplateText:
    """The text of a template, and its edits. Each raises TemplateError if its place does not exist.

    A path has the names of the members on the way, such as ``"Resources", "Api", "Properties"``.
    """

    def __init__(self, text: str) -> None:
        self.text = text.removesuffix("\n") + "\n"
        try:
            root = yaml.compose(self.text, SafeLoader)
        except yaml.YAMLError as error:
            raise TemplateError(str(error)) from None
        if not isinstance(root, yaml.MappingNode):
            raise TemplateError("not a template: it has no Resources")
        self._root = root

    def has(self, *path: str) -> bool:
        """Return whether there is a value at this path."""
        return self._find(path) is not None

    def member(self, *path: str) -> list[str]:
        """Return the lines of a member without their common indentation; none if it does not exist."""
        found = self._find(path)
        if found is None:
            return []
        key, value = found
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
