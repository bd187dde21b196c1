"""Client capabilities: what a question needs, and what of it a client did not declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.methods import TASKS_EXTENSION

CapabilityPath = tuple[str, ...]
"""A capability by its members: ("sampling", "tools"), ("extensions", "com.example/approval")."""

ELICITATION_FORM: CapabilityPath = ("elicitation", "form")
ELICITATION_URL: CapabilityPath = ("elicitation", "url")
SAMPLING: CapabilityPath = ("sampling",)
ROOTS: CapabilityPath = ("roots",)
TASKS: CapabilityPath = ("extensions", TASKS_EXTENSION)

_KNOWN: Final = (
    *("elicitation", "elicitation.form", "elicitation.url"),
    *("sampling", "sampling.context", "sampling.tools", "roots"),
)
"""ClientCapabilities of the schema, by their dotted names."""

_OPEN: Final = re.compile(r"(extensions|experimental)\.\S+")


def capability_path(name: str) -> CapabilityPath:
    """The path of a dotted name such as "sampling.tools"; an extension's own name keeps its dots."""
    first, _, rest = name.partition(".")
    if first == "extensions" and rest:
        return (first, rest)
    return tuple(name.split("."))


def declarable_path(where: str, name: str) -> CapabilityPath:
    """The path of a capability that a client can declare.

    Raises DefinitionError for any other, since no client would ever have it: an extension's name is free.
    """
    if not isinstance(name, str) or not (name in _KNOWN or _OPEN.fullmatch(name)):
        from difflib import get_close_matches  # for the author of a mistake

        nearest = get_close_matches(str(name), _KNOWN, n=1, cutoff=0.0)
        raise DefinitionError(
            f"{where}: clients have no capability {name!r:.100}; did you mean {nearest[0]!r}? There are "
            f"{', '.join(_KNOWN)}, extensions.<name> and experimental.<name>"
        )
    return capability_path(name)


def declares(capabilities: Mapping[str, Any], wanted: CapabilityPath) -> bool:
    """Whether a client declared a capability. `elicitation: {}` means form mode only (client/elicitation)."""
    if wanted == ELICITATION_FORM and capabilities.get("elicitation") == {}:
        return True
    node: Any = capabilities
    for name in wanted:
        node = node.get(name)
        if not isinstance(node, Mapping):
            return False
    return True


def missing(capabilities: Mapping[str, Any], wanted: Iterable[CapabilityPath]) -> dict[str, Any]:
    """The undeclared ones of `wanted`, in ClientCapabilities form: the `requiredCapabilities` of -32021."""
    required: dict[str, Any] = {}
    for capability in wanted:
        if not declares(capabilities, capability):
            node = required
            for name in capability:
                node = node.setdefault(name, {})
    return required
