"""Profiles of released clients: JSON files in `profiles/`, whose `facts` have dated sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

from mcp_roundtrip.protocol.capabilities import declarable_path, declares
from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, UI_EXTENSION

PROFILES: Final = Path(__file__).with_name("profiles")


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """A client as it was observed.

    `title`, `version`: the client and the release that was observed.
    `package`: the package of this release, if there is one.
    `opens_with`, `protocol_version`, `client_info`, `capabilities`: its first request.
    `answers_questions`: whether its user can answer the input requests that it declares.
    `mounts_apps`: whether it shows the view of a tool (MCP Apps).
    `follows_state_only_rounds`: whether it sends a request again for a `requestState` without questions.
    `max_rounds`: the rounds that it follows in one call; None if it has no limit or cannot follow rounds.
    `has_model`: whether a model reads the results and calls the tools.
    `facts`: the dated sources of members, such as an issue, a documentation page, or a recorded release.
    """

    name: str
    title: str
    version: str
    package: str | None
    opens_with: Literal["initialize", "server/discover"]
    protocol_version: str
    client_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    answers_questions: bool
    mounts_apps: bool
    follows_state_only_rounds: bool
    max_rounds: int | None
    has_model: bool
    facts: Sequence[Mapping[str, Any]]

    @classmethod
    def load(cls, name: str) -> ClientProfile:
        """Read a profile. Raises ValueError for an unknown name."""
        path = PROFILES / f"{name}.json"
        if name not in cls.names():
            nearest = get_close_matches(name, cls.names(), n=3, cutoff=0.0)
            raise ValueError(f"there is no client {name!r}; did you mean {', '.join(nearest)}?")
        return cls(name, **json.loads(path.read_text("utf-8")))

    @staticmethod
    def names() -> list[str]:
        """Return the names of all profiles."""
        return sorted(path.stem for path in PROFILES.glob("*.json"))

    @property
    def is_legacy(self) -> bool:
        """Whether the client opens with `initialize` and is of an earlier version."""
        return self.protocol_version in LEGACY_VERSIONS

    @property
    def shows_apps(self) -> bool:
        """Whether it declares MCP Apps and shows them."""
        return self.mounts_apps and declares(self.capabilities, ("extensions", UI_EXTENSION))


def check_capabilities(capabilities: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a capability that no client has. Extensions may have any name."""
    for name, members in capabilities.items():
        if name not in ("extensions", "experimental"):
            for dotted in (name, *(f"{name}.{member}" for member in members)):
                declarable_path("capabilities", dotted)
