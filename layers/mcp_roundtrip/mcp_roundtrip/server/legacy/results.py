"""What 2025-11-25 and 2025-06-18 have of a result, and of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.protocol.constants import LEGACY_VERSION

_LATER_MEMBERS: Final = frozenset({"ttlMs", "cacheScope"})
"""Members of results that these versions do not have."""


def has_tasks(version: str) -> bool:
    """Return whether this version of the protocol has tasks."""
    return version == LEGACY_VERSION


def legacy_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the members that these versions do not have."""
    later = _LATER_MEMBERS | ({"resultType"} if result.get("resultType") == "complete" else set())
    return {name: member for name, member in call_tool_result(result).items() if name not in later}


def call_tool_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CallToolResult without structured content that is no object: `content` has it as text."""
    if isinstance(result.get("structuredContent", {}), dict):
        return dict(result)
    return {name: member for name, member in result.items() if name != "structuredContent"}
