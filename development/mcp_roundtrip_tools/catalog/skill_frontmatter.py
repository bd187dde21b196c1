"""Read the YAML frontmatter of a SKILL.md as JSON, by the core schema of YAML 1.2 as clients do.

PyYAML knows YAML 1.1, in which `no` is false, `012` is ten, and `2026-01-02` is a date. With the core schema
`no` and the date are texts, and `012` is twelve (yaml.org/spec/1.2.2, chapter 10.3).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

MAX_FRONTMATTER: Final = 16_384
"""Characters of the frontmatter, as YAML and as JSON."""

_BLOCK: Final = re.compile(
    rf"\A---[ \t]*\r?\n(.{{0,{MAX_FRONTMATTER}}}?\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL
)

_PLAIN: Final = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
)
"""The plain scalars of the core schema that are no text: tag, pattern, first characters."""


class _CoreLoader(yaml.SafeLoader):
    """A loader with the core schema that refuses duplicate keys, anchors and aliases.

    A few aliases of aliases are a document of any size, and JSON has none.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's class attribute

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs have no type
        if event.anchor is not None:
            raise yaml.composer.ComposerError(
                None, None, "anchors and aliases are not supported", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(set(map(str, keys))) != len(keys) or not all(isinstance(key, str) for key in keys):
            raise yaml.constructor.ConstructorError(
                None, None, "keys must be different texts", node.start_mark
            )
        return super().construct_mapping(node, deep=True)


for _tag, _pattern, _first in _PLAIN:
    _CoreLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first, *([""] * (_tag == "null"))]
    )


def _integer(loader: _CoreLoader, node: yaml.ScalarNode) -> int:
    text = node.value
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


_CoreLoader.add_constructor("tag:yaml.org,2002:int", _integer)


# PyYAML raises the last two for a text that its tag does not fit, such as `!!bool x`.
_MALFORMED: Final = (yaml.YAMLError, TypeError, ValueError, RecursionError, KeyError, AttributeError)


def read_frontmatter(text: str) -> dict[str, Any]:
    """Return the frontmatter at the start of a SKILL.md. Raises ValueError with the reason."""
    found = _BLOCK.match(text.removeprefix("\ufeff"))
    if found is None:
        raise ValueError(
            f"it does not begin with YAML frontmatter of at most {MAX_FRONTMATTER:,} characters between two "
            "lines ---; move longer texts below it"
        )
    try:
        members = yaml.load(found[1], _CoreLoader)  # noqa: S506 - a subclass of SafeLoader
        json.dumps(members, allow_nan=False, ensure_ascii=False).encode()
    except _MALFORMED as error:
        raise ValueError(f"its frontmatter is no YAML that JSON can hold: {_one_line(error)}") from None
    if not isinstance(members, dict):
        raise ValueError("its frontmatter has no members")
    return members


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
