"""Read the property Events of a function (AWS SAM developer guide, "EventSource")."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_roundtrip_tools.template.resource import TemplateResource


def events_of(function: TemplateResource, kind: str) -> Iterator[TemplateResource]:
    """Yield the properties of a function's events of this type. Raises TemplateError."""
    for name, event in function.members("Events"):
        if isinstance(event, dict) and event.get("Type") == kind:
            yield function.part(f"Events.{name}", event.get("Properties") or {})
