"""Collect what a template has and this computer cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp_roundtrip_tools.template.model import Application, TemplateError


@dataclass(slots=True)
class LeftOut:
    """The parts of one template that are not served, with their reasons.

    `targets` has the reason of each function and integration, by the name that routes and callers use.
    `notes` has the reasons of all other parts.
    """

    targets: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Leave out the part that the block reads, if it raises TemplateError."""
        try:
            yield
        except TemplateError as error:
            self.notes.append(str(error))


def describe_left_out(application: Application) -> list[str]:
    """Return one line for each part that is not served: its reason, and its routes."""
    lines = []
    for name, reason in application.left_out.items():
        routes = ", ".join(route.key for route in application.routes if route.function == name)
        lines.append(f"{reason} ({routes})" if routes else reason)
    return [*lines, *application.notes]
