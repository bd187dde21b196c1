"""Read YAML with CloudFormation's short tags into the long form: ``!Sub x`` becomes ``{"Fn::Sub": x}``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import yaml

from mcp_roundtrip_tools.template.model import TemplateError

__all__ = ["SafeLoader", "load", "parse", "scalar_text"]

try:
    from yaml import CSafeLoader as SafeLoader  # the C implementation takes a tenth of the time
except ImportError:  # PyYAML was built without it
    from yaml import SafeLoader  # type: ignore[assignment]


def load(path: Path) -> dict[str, Any]:
    """Return the template at `path`. Raises TemplateError."""
    try:
        with path.open(encoding="utf-8") as file:  # its name is in errors
            document = parse(file)
    except FileNotFoundError:
        raise TemplateError(f"there is no {path}: change to the folder of an application") from None
    except OSError as error:
        raise TemplateError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TemplateError(f"{path}: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(f"{path}: not a template: it has no Resources")
    _check_sections(document, path)
    return document


_SECTIONS = ("Globals", "Mappings", "Outputs", "Parameters", "Rules")
"""The sections that other modules read, beside Resources and Conditions: their members are objects."""


def _check_sections(document: Mapping[str, Any], path: Path) -> None:
    """Raise TemplateError for a section or a member of one that is no object, such as a wrong indentation."""
    for section in _SECTIONS:
        members = document.get(section) or {}
        if not isinstance(members, dict):
            raise TemplateError(f"{path}: {section} must be an object")
        for name, member in members.items():
            if not isinstance(member, dict) and not name.startswith("Fn::"):
                raise TemplateError(f"{path}: {section}.{name} must be an object")


def parse(text: str | TextIO) -> Any:
    """Return YAML as data. Raises yaml.YAMLError."""
    # The loader is a SafeLoader whose added constructors return plain data.
    return yaml.load(text, _Loader)  # noqa: S506


def scalar_text(value: Any) -> str:
    """Return a scalar as CloudFormation reads it: ``Default: true`` is the string "true".

    As in the AWS SAM CLI, YAML 1.1 counts: ``yes`` is true, 010 is 8. Raises TypeError for other values.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise TypeError(f"{value!r} is not a scalar")
    return str(value)


class _Loader(SafeLoader):
    """A SafeLoader that also reads CloudFormation's tags. Names are strings, such as an account's number."""

    def __init__(self, text: str | TextIO) -> None:
        super().__init__(text)
        self._checked: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if node not in self._checked:  # afterwards it has the names that `<<` merges, too
            self._checked.add(node)
            _refuse_repeated_names(node)
        super().flatten_mapping(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        members = super().construct_mapping(node, deep)
        return {
            name if isinstance(name, str) else _name(name, node): value for name, value in members.items()
        }


# CloudFormation has no dates: an unquoted 2026-07-28 is a string.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _construct(loader: _Loader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)  # the attribute may contain dots
    return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}


def _refuse_repeated_names(node: yaml.MappingNode) -> None:
    """Raise YAMLError for a name that is there twice: the AWS SAM CLI silently drops the first."""
    names = set[str]()
    for key, _ in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name in names:
            problem = f"{name} is there twice: write one with the members of both"
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        names |= {name} - {"", "<<"}


def _name(name: Any, node: yaml.MappingNode) -> str:
    try:
        return scalar_text(name)
    except TypeError as error:
        raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from None


_Loader.add_multi_constructor("!", _construct)
