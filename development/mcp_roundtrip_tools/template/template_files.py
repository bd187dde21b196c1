"""The template of an application, and the local templates of its nested stacks, as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.model import PACKAGE, TemplateError, hint
from mcp_roundtrip_tools.template.resources import NESTED
from mcp_roundtrip_tools.template.yaml_reader import load


@dataclass(frozen=True, slots=True)
class TemplateTree:
    """A template with those of its nested stacks, by logical id. `label` is its path in the parent's."""

    path: Path
    label: str
    document: Mapping[str, Any]
    nested: Mapping[str, TemplateTree]

    @property
    def declared(self) -> Mapping[str, Any]:
        """The section Parameters."""
        return self.document.get("Parameters") or {}

    def files(self) -> Iterator[Path]:
        """Yield the files of all templates."""
        yield self.path
        for tree in self.nested.values():
            yield from tree.files()

    def parameters(self) -> Iterator[str]:
        """Yield the names of all parameters on the command line: `NAME`, and `Platform.NAME`."""
        yield from self.declared
        for stack, tree in self.nested.items():
            yield from (f"{stack}.{name}" for name in tree.parameters())


def read_tree(path: Path) -> TemplateTree:
    """Read a template, and the templates of its nested stacks that are files. Raises TemplateError."""
    return _read(path.resolve(), "the template", ())


def check_given(given: Mapping[str, str], tree: TemplateTree) -> None:
    """Raise TemplateError for a parameter that no template has, with the nearest one that one of them has."""
    names = [*tree.parameters()]
    for name in given:
        if name not in names:
            raise TemplateError(f"the template has no parameter {name}; {hint_for(name, tree)}")


def hint_for(name: str, tree: TemplateTree) -> str:
    """Return the nearest parameter of any template, otherwise those of the application's."""
    names = [*tree.parameters()]
    meant = {name.rpartition(".")[2]: name for name in reversed(names)} | {name: name for name in names}
    return hint(name, meant, tree.declared)


def _read(path: Path, label: str, parents: tuple[Path, ...]) -> TemplateTree:
    document = load(path)
    nested = {}
    for name, resource in document["Resources"].items():
        if (location := _location(resource)) is None:
            continue
        member, written = location
        file = (path.parent / written).resolve()
        if not file.is_file():
            raise TemplateError(f"{name}.{member}: there is no file {file}")
        if file in (*parents, path):
            raise TemplateError(f"{name}.{member}: {written} is a nested stack of itself")
        nested[name] = _read(file, written, (*parents, path))
    return TemplateTree(path, label, document, nested)


def _location(resource: Any) -> tuple[str, str] | None:
    """Return the property with the template of a nested stack, and its path; None if it is no file."""
    if not isinstance(resource, dict) or (member := NESTED.get(str(resource.get("Type")))) is None:
        return None
    written = (resource.get("Properties") or {}).get(member)
    return (member, written) if isinstance(written, str) and "://" not in written else None


def check_platform(tree: TemplateTree) -> None:
    """Raise TemplateError if the platform, if there is one, has another version than the package."""
    installed = version(PACKAGE)
    for nested in tree.nested.values():
        written = platform_version(nested.document)
        if written not in (None, installed):
            raise TemplateError(
                f"{nested.label} is that of {PACKAGE} {written}, and {installed} is installed: "
                f"run make upgrade, or install {PACKAGE}=={written}"
            )


def platform_version(document: Mapping[str, Any]) -> str | None:
    """Return the version of the package that wrote a template; None if it is no template of the platform."""
    metadata = (document.get("Metadata") or {}).get("McpRoundtrip")
    return str(metadata["Version"]) if isinstance(metadata, dict) and "Version" in metadata else None
