"""The permissions that CloudFormation needs for each type of resource, from permissions.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.template.yaml_reader import parse


@dataclass(frozen=True, slots=True)
class Needed:
    """Actions on resources. Resources and conditions are texts for Fn::Sub in the pipeline's template.yaml.

    `only_if` is a condition of that template. `conditions` are members of the statement's Condition.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, list[str]]] | None = None
    only_if: str = ""

    @classmethod
    def read(
        cls,
        resources: list[str],
        conditions: Mapping[str, Mapping[str, list[str]]] | None = None,
        only_if: str = "",
        **actions: str,
    ) -> "Needed":
        """Return an entry of the file, with the names of a service's actions by the service."""
        [(service, names)] = actions.items()
        return cls(
            tuple(f"{service}:{each}" for each in names.split()), tuple(resources), conditions, only_if
        )


_FILE: Final[Mapping[str, Any]] = parse(Path(__file__).with_name("permissions.yaml").read_text("utf-8"))

RESOURCES: Final[Mapping[str, str]] = _FILE["resources"]
"""ARNs by name."""

PERMISSIONS: Final[Mapping[str, tuple[Needed, ...]]] = {
    kind: tuple(Needed.read(**entry) for entry in entries) for kind, entries in _FILE["permissions"].items()
}
"""The permissions by type."""
