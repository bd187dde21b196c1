"""The properties of a resource, with intrinsic functions resolved on access."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_roundtrip_local.template.intrinsics import TemplateNames, Unresolvable, resolve
from mcp_roundtrip_local.template.model import TemplateError
from mcp_roundtrip_local.template.yaml_reader import scalar_text


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """The properties of a resource. Methods raise TemplateError, which names the resource and property."""

    name: str
    properties: Mapping[str, Any]
    names: TemplateNames

    def get(self, name: str, default: Any = None) -> Any:
        try:
            value = resolve(self.properties.get(name), self.names)
        except Unresolvable as error:
            raise TemplateError(f"{self.name}.{name}: {error}") from None
        return default if value is None else value

    def get_known(self, name: str) -> dict[str, Any]:
        """Return the members of an object that can be resolved without a deployment."""
        found = {}
        for member, value in (self.properties.get(name) or {}).items():
            with suppress(Unresolvable):
                found[member] = resolve(value, self.names)
        return found

    def text(self, name: str, default: str | None = None) -> str:
        return self.as_text(name, self.get(name, default))

    def as_text(self, name: str, value: Any) -> str:
        try:
            return scalar_text(value)
        except TypeError:
            raise TemplateError(f"{self.name}.{name}: must be a string") from None

    def number(self, name: str, default: float) -> float:
        try:
            return float(self.get(name, default))
        except (TypeError, ValueError):
            raise TemplateError(f"{self.name}.{name}: must be a number") from None

    def folder(self, name: str, base: Path) -> Path:
        folder = base / self.text(name)
        if not folder.is_dir():
            raise TemplateError(f"{self.name}.{name}: there is no folder {folder}")
        return folder.resolve()
