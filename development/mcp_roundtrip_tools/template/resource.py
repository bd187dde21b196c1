"""The properties of a resource, with intrinsic functions resolved on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, is_intrinsic, resolve
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import scalar_text


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """The properties of a resource of the template in `folder`.

    `stack` is the name of its nested stack, such as `Platform`; empty for that of the application's template.
    Methods raise TemplateError, which names the resource and property.
    """

    logical_id: str
    properties: Mapping[str, Any]
    names: TemplateNames
    folder: Path
    stack: str = ""

    @property
    def name(self) -> str:
        """The logical id with the name of the nested stack, such as `Platform.StateKey`."""
        return f"{self.stack}.{self.logical_id}" if self.stack else self.logical_id

    @property
    def physical_name(self) -> str:
        """The name on this computer of a resource that has none of its own. Queues' names have no dots."""
        return self.name.replace(".", "-")

    def part(self, name: str, properties: Mapping[str, Any]) -> TemplateResource:
        """Return an object within the properties as a resource of its own."""
        return replace(self, logical_id=f"{self.logical_id}.{name}", properties=properties)

    def get(self, name: str, default: Any = None) -> Any:
        value = self.resolve(name, self.properties.get(name))
        return default if value is None else value

    def resolve(self, name: str, node: Any) -> Any:
        """Return the value of `node`, which is a part of the property `name`."""
        try:
            return resolve(node, self.names)
        except Unresolvable as error:
            raise TemplateError(f"{self.name}.{name}: {error}") from None

    def members(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Yield the members of an object within a property, unresolved."""
        node: Any = self.properties
        for name in names:
            node = node.get(name) or {}
            if is_intrinsic(node):
                node = self.resolve(name, node) or {}
            if not isinstance(node, dict):
                raise TemplateError(f"{self.name}.{name}: must be an object")
        yield from node.items()

    def get_known(self, name: str) -> dict[str, Any]:
        """Return the members of an object that can be resolved without a deployment."""
        found = {}
        with suppress(TemplateError):
            for member, node in self.members(name):
                with suppress(TemplateError):
                    found[member] = self.resolve(name, node)
        return found

    def text(self, name: str, default: str | None = None) -> str:
        return self.as_text(name, self.get(name, default))

    def as_text(self, name: str, value: Any) -> str:
        try:
            return scalar_text(value)
        except TypeError:
            problem = "is missing" if value is None else "must be a string"
            raise TemplateError(f"{self.name}.{name}: {problem}") from None

    def number(self, name: str, default: float) -> float:
        try:
            return float(self.get(name, default))
        except (TypeError, ValueError):
            raise TemplateError(f"{self.name}.{name}: must be a number") from None

    def folder_of(self, name: str) -> Path:
        """Return the folder that a property names, relative to the template."""
        folder = self.folder / self.text(name)
        if not folder.is_dir():
            raise TemplateError(f"{self.name}.{name}: there is no folder {folder}")
        return folder.resolve()
