"""Handlers for skills, created at the first request that needs them: a call of a tool needs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcp_roundtrip.protocol.constants import (
    RESOURCES_DIRECTORY_READ,
    RESOURCES_LIST,
    RESOURCES_READ,
    RESOURCES_TEMPLATES_LIST,
    SKILLS_GET,
    SKILLS_LIST,
)
from mcp_roundtrip.server.endpoint import created_at_first_use
from mcp_roundtrip.server.model import Handler

if TYPE_CHECKING:
    from mcp_roundtrip.server.listing import Listable
    from mcp_roundtrip.server.skills import SkillMethods


def skill_handlers(create: Callable[[], SkillMethods]) -> dict[str, Handler]:
    """Return the handlers of the methods of SEP-2640."""
    return created_at_first_use(
        lambda: create().handlers(), SKILLS_LIST, SKILLS_GET, RESOURCES_DIRECTORY_READ
    )


def resource_handlers(
    create: Callable[[], SkillMethods],
    own: Mapping[str, Handler],
    listed: Callable[[], Mapping[str, Listable]],
) -> dict[str, Handler]:
    """Return the handlers of resources, with the files of skills among them.

    `own`: the handlers of other resources. `listed`: returns those that have no template.
    """
    return created_at_first_use(
        lambda: create().resource_handlers(own, listed()),
        *(RESOURCES_LIST, RESOURCES_TEMPLATES_LIST, RESOURCES_READ),
    )
