"""The names that a new tool or function cannot have. Each is refused before a file is changed."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.growth.entries import find_conflict

MAX_NAME = 30
"""A function's name has at most 64 characters: the stack's name, `_`, this name, and `_worker`. `make deploy`
refuses a stack's name that is too long for that."""

RESERVED_ENDS = ("_worker", "_tasks")
"""What the names of a function's worker and queue end with."""

RESERVED = frozenset({"server", "handler", "worker", "app", "live"})
"""Names that a function's module uses, and the folder of the live events."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class GrowthError(McpRoundtripError):
    """The tool or function cannot be added; the message says why. No file was changed."""


def check_name(name: str, command: str) -> None:
    """Refuse a name that no tool can have. `command` is that of the Makefile. Raises GrowthError."""
    if not name:
        raise GrowthError(f"a name is missing: make {command} NAME=find_orders")
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise GrowthError(
            f"{name!r} must be at most {MAX_NAME} lower-case letters, digits and single underscores between "
            "them, and begin with a letter"
        )
    if name.endswith(RESERVED_ENDS):
        raise GrowthError(f"{name!r} ends like the name of a worker or of its queue")
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in RESERVED:
        raise GrowthError(f"{name!r} is reserved in Python or in this project")


def check_module_name(name: str) -> None:
    """Refuse the name of a module that functions may import: another would hide it. Raises GrowthError."""
    if name in sys.stdlib_module_names or name in packages_distributions():
        raise GrowthError(f"{name!r} is the name of an installed module, which a tool's module would hide")


def check_function_name(project: Path, document: Mapping[str, Any], name: str) -> None:
    """Refuse the name of a function whose folders or resources exist. Raises GrowthError."""
    for path in (project / folder / name for folder in ("functions", "events")):
        if path.exists():
            raise GrowthError(f"{name!r}: {path} exists already")
    if found := find_conflict(document, name):
        raise GrowthError(f"{name!r}: template.yaml uses that name in {found!r}")
