"""The capabilities that clients declare, and the known faults of clients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError, dotted_capabilities
from mcp_roundtrip.protocol import constants

CapabilityPath = tuple[str, ...]
"""The members that lead to a capability, such as ("extensions", "com.example/approval")."""

ELICITATION_FORM: CapabilityPath = ("elicitation", "form")
ELICITATION_URL: CapabilityPath = ("elicitation", "url")
SAMPLING: CapabilityPath = ("sampling",)
ROOTS: CapabilityPath = ("roots",)
TASKS: CapabilityPath = ("extensions", constants.TASKS_EXTENSION)

INPUT_CAPABILITIES: Final = frozenset({"elicitation", "sampling", "roots"})
"""The capabilities of clients that answer input requests."""

_KNOWN: Final = (
    *("elicitation", "elicitation.form", "elicitation.url"),
    *("sampling", "sampling.context", "sampling.tools", "roots"),
)
"""The dotted names of ClientCapabilities in the schema."""

_OPEN: Final = rf"extensions\.{constants.META_PREFIX}{constants.META_NAME}|experimental\.\S+"


def capability_path(name: str) -> CapabilityPath:
    """Return the path of a dotted name such as "sampling.tools". The dots in an extension's name stay."""
    first, _, rest = name.partition(".")
    if first == "extensions" and rest:
        return (first, rest)
    return tuple(name.split("."))


def declarable_path(where: str, name: str) -> CapabilityPath:
    """Return the path of a known capability or of any extension. Raises DefinitionError for other names."""
    if name not in _KNOWN and not (isinstance(name, str) and re.fullmatch(_OPEN, name)):
        raise DefinitionError(
            f"{where}: clients have no capability {name!r:.100}; write one of "
            f"{', '.join(_KNOWN)}, extensions.<prefix>/<name> or experimental.<name>"
        )
    return capability_path(name)


def declares(capabilities: Mapping[str, Any], wanted: CapabilityPath) -> bool:
    """Return whether a client declares a capability. `elicitation: {}` is form mode (client/elicitation)."""
    if wanted == ELICITATION_FORM and is_empty(capabilities.get("elicitation")):
        return True
    node: Any = capabilities
    for name in wanted:
        node = node.get(name)
        if not isinstance(node, Mapping):
            return False
    return True


def is_empty(value: Any) -> bool:
    """Return whether an object has no members. Members that are null count as absent."""
    return isinstance(value, Mapping) and all(member is None for member in value.values())


def answers_input_requests(capabilities: Mapping[str, Any]) -> bool:
    return any(declares(capabilities, (name,)) for name in INPUT_CAPABILITIES)


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client shows MCP Apps (SEP-1865). A declaration without MIME types counts."""
    if not declares(capabilities, ("extensions", constants.UI_EXTENSION)):
        return False
    types = capabilities["extensions"][constants.UI_EXTENSION].get("mimeTypes")
    return types is None or (isinstance(types, list) and constants.UI_MIME_TYPE in types)


def shows_forms_in_apps(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client can show an elicitation in an MCP App (draft SEP-3118)."""
    return (
        shows_apps(capabilities)
        and declares(capabilities, ELICITATION_FORM)
        and declares(capabilities, ("extensions", constants.UI_EXTENSION, "elicitation"))
    )


def missing_capabilities(capabilities: Mapping[str, Any], wanted: Iterable[CapabilityPath]) -> dict[str, Any]:
    """Return the capabilities that a client does not declare, as the `requiredCapabilities` of -32021."""
    required: dict[str, Any] = {}
    for capability in wanted:
        if not declares(capabilities, capability):
            declare(required, capability)
    return required


def declare(capabilities: dict[str, Any], capability: CapabilityPath) -> None:
    node = capabilities
    for name in capability:
        node = node.setdefault(name, {})


def declares_required(capabilities: Mapping[str, Any], required: Mapping[str, Any]) -> bool:
    """Return whether a client declares all `requiredCapabilities` of a -32021."""
    return not missing_capabilities(capabilities, capability_paths(required))


def capability_paths(required: Mapping[str, Any]) -> Iterator[CapabilityPath]:
    return map(capability_path, dotted_capabilities(required))


_BREAK_ON_STATE_ONLY_ROUNDS: Final = frozenset({"Anthropic/ClaudeAI"})
"""The `clientInfo.name` of clients that end a call with an error at an InputRequiredResult without questions,
in place of sending the call again. Remove a client that is fixed.

claude.ai: https://github.com/anthropics/claude-ai-mcp/issues/1027, seen on 2026-09-13. The OpenAI Agents SDK
0.24.0 fails, too, but sends the same as the Python SDK's `Client`, which sends the call again. Both declare
no input capability, by which `server.call_plan` decides.
"""

_NEED_ELICITATION_IDS: Final = frozenset({"codex-mcp-client", "copilot-cli"})
"""The `clientInfo.name` of clients that fail at a URL elicitation without `elicitationId`, which revision
2026-07-28 removed. Remove a client that is fixed.

Both use rmcp: https://github.com/openai/codex/issues/40657, seen on 2026-11-28.
"""


def breaks_on_state_only_rounds(info: Mapping[str, Any] | None) -> bool:
    """Return whether the client with this `clientInfo` is known to fail at a checkpoint."""
    return _is_named(info, _BREAK_ON_STATE_ONLY_ROUNDS)


def needs_elicitation_ids(info: Mapping[str, Any] | None) -> bool:
    """Return whether the client with this `clientInfo` is known to need `elicitationId`."""
    return _is_named(info, _NEED_ELICITATION_IDS)


def _is_named(info: Mapping[str, Any] | None, names: frozenset[str]) -> bool:
    name = (info or {}).get("name")
    return isinstance(name, str) and name in names


def version_has_tasks(version: str) -> bool:
    """Return whether this earlier version of the protocol has tasks."""
    return version == constants.LEGACY_VERSION
