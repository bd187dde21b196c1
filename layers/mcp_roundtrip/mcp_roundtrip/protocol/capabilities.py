"""Client capabilities: what a question needs, and what of it a client did not declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_roundtrip.protocol.methods import TASKS_EXTENSION

Path = tuple[str, ...]
"""A capability by its members: ("sampling", "tools"), ("extensions", "com.example/approval")."""

ELICITATION_FORM: Path = ("elicitation", "form")
ELICITATION_URL: Path = ("elicitation", "url")
SAMPLING: Path = ("sampling",)
ROOTS: Path = ("roots",)
TASKS: Path = ("extensions", TASKS_EXTENSION)


def path(name: str) -> Path:
    """The path of a dotted name such as "sampling.tools"; an extension's own name keeps its dots."""
    first, _, rest = name.partition(".")
    if first == "extensions" and rest:
        return (first, rest)
    return tuple(name.split("."))


def declares(capabilities: Mapping[str, Any], wanted: Path) -> bool:
    """Whether a client declared a capability. `elicitation: {}` means form mode only (client/elicitation)."""
    if wanted == ELICITATION_FORM and capabilities.get("elicitation") == {}:
        return True
    node: Any = capabilities
    for name in wanted:
        node = node.get(name)
        if not isinstance(node, Mapping):
            return False
    return True


def missing(capabilities: Mapping[str, Any], wanted: Iterable[Path]) -> dict[str, Any]:
    """The undeclared ones of `wanted`, in ClientCapabilities form: the `requiredCapabilities` of -32021."""
    required: dict[str, Any] = {}
    for capability in wanted:
        if not declares(capabilities, capability):
            node = required
            for name in capability:
                node = node.setdefault(name, {})
    return required
