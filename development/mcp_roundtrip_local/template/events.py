"""Read the property Events of a function (AWS SAM developer guide, "EventSource")."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_roundtrip_local.template.model import Route
from mcp_roundtrip_local.template.resource import TemplateResource


def events_of(function: TemplateResource, kind: str) -> Iterator[TemplateResource]:
    """Yield the properties of a function's events of this type."""
    for name, event in (function.properties.get("Events") or {}).items():
        if event.get("Type") == kind:
            properties = event.get("Properties") or {}
            yield TemplateResource(f"{function.name}.Events.{name}", properties, function.names)


def routes_of(resource: TemplateResource, function: str) -> Iterator[Route]:
    """Yield the routes of an HTTP API that lead to the function with this name."""
    for event in events_of(resource, "HttpApi"):
        yield Route(event.text("Method", "ANY").upper(), event.text("Path", "$default"), function)
