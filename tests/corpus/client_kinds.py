"""The kinds of clients that the layer treats differently: their revision, and what they declare."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TASKS: Final[Mapping[str, Any]] = {"io.modelcontextprotocol/tasks": {}}
APPS: Final[Mapping[str, Any]] = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
FORMS_IN_APPS: Final[Mapping[str, Any]] = {"io.modelcontextprotocol/ui": {"elicitation": {}}}
FORMS_AND_URLS: Final[Mapping[str, Any]] = {"elicitation": {"form": {}, "url": {}}}
EVERYTHING: Final[Mapping[str, Any]] = {
    **FORMS_AND_URLS,
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
    "extensions": {**TASKS, "com.example/approval": {}},
}


@dataclass(frozen=True)
class Kind:
    capabilities: Mapping[str, Any]
    name: str = "corpus"
    version: str = "2026-07-28"
    keeps_session: bool = True
    augments_tasks: bool = False
    """Whether it asks for tasks as in SEP-2322."""

    @property
    def is_legacy(self) -> bool:
        """Whether it opens with `initialize`."""
        return self.version < "2026"

    @property
    def has_tasks(self) -> bool:
        return self.augments_tasks or TASKS.items() <= self.capabilities.get("extensions", {}).items()

    def declares(self, capability: str, part: str = "") -> bool:
        """Return whether it declares a part of a capability. Elicitation without parts has forms."""
        found = self.capabilities.get(capability)
        return found is not None and (not part or part in found or (part == "form" and not found))

    @property
    def info(self) -> dict[str, str]:
        return {"name": self.name, "version": "1.0.0"}


CLAUDE_AI: Final = "Anthropic/ClaudeAI"
"""A client that breaks on states without questions."""

KINDS: Final[Mapping[str, Kind]] = {
    "shows forms": Kind({"elicitation": {}}),
    "shows forms and URLs": Kind(FORMS_AND_URLS),
    "shows URLs only": Kind({"elicitation": {"url": {}}}),
    "shows forms and URLs, follows tasks": Kind({**FORMS_AND_URLS, "extensions": TASKS}),
    "answers everything, follows tasks": Kind(EVERYTHING),
    "samples and has roots": Kind({"sampling": {}, "roots": {}}),
    "only follows tasks": Kind({"extensions": TASKS}),
    "declares nothing": Kind({}),
    "shows apps": Kind({"extensions": APPS}),
    "shows apps, follows tasks": Kind({"extensions": {**APPS, **TASKS}}),
    "shows forms, also in apps": Kind({"elicitation": {}, "extensions": FORMS_IN_APPS}),
    "claude.ai with apps": Kind({"extensions": APPS}, CLAUDE_AI),
    "claude.ai with forms": Kind({"elicitation": {}}, CLAUDE_AI),
    "claude.ai with forms, follows tasks": Kind({"elicitation": {}, "extensions": TASKS}, CLAUDE_AI),
    "claude.ai, only follows tasks": Kind({"extensions": TASKS}, CLAUDE_AI),
    "claude.ai declares nothing": Kind({}, CLAUDE_AI),
    "2025-11-25, shows forms and URLs": Kind(FORMS_AND_URLS, version="2025-11-25"),
    "2025-11-25, declares nothing": Kind({}, version="2025-11-25"),
    "2025-11-25, shows apps": Kind({"extensions": APPS}, version="2025-11-25"),
    "2025-11-25, forgets its session": Kind(FORMS_AND_URLS, version="2025-11-25", keeps_session=False),
    "2025-11-25 with tasks of SEP-2322": Kind(
        {**FORMS_AND_URLS, "sampling": {}, "roots": {}}, version="2025-11-25", augments_tasks=True
    ),
    "2025-06-18, shows forms": Kind({"elicitation": {}}, version="2025-06-18"),
    "2025-06-18, declares nothing": Kind({}, version="2025-06-18"),
}
