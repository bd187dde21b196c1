"""What clients can do: the capabilities that they declare, and known faults that they do not declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION, UI_EXTENSION, UI_MIME_TYPE

CapabilityPath = tuple[str, ...]
"""The members that lead to a capability: ("sampling", "tools"), ("extensions", "com.example/approval")."""

ELICITATION_FORM: CapabilityPath = ("elicitation", "form")
ELICITATION_URL: CapabilityPath = ("elicitation", "url")
SAMPLING: CapabilityPath = ("sampling",)
ROOTS: CapabilityPath = ("roots",)
TASKS: CapabilityPath = ("extensions", TASKS_EXTENSION)

INPUT_CAPABILITIES: Final = frozenset({"elicitation", "sampling", "roots"})
"""The capabilities that declare that a client answers input requests."""

_KNOWN: Final = (
    *("elicitation", "elicitation.form", "elicitation.url"),
    *("sampling", "sampling.context", "sampling.tools", "roots"),
)
"""The dotted names of ClientCapabilities in the schema."""

_OPEN: Final = r"(extensions|experimental)\.\S+"


def capability_path(name: str) -> CapabilityPath:
    """Return the path of a dotted name such as "sampling.tools". The dots in an extension's name stay."""
    first, _, rest = name.partition(".")
    if first == "extensions" and rest:
        return (first, rest)
    return tuple(name.split("."))


def declarable_path(where: str, name: str) -> CapabilityPath:
    """Return the path of a capability that clients can declare.

    Raises DefinitionError for any other name. The names of extensions are open.
    """
    if not isinstance(name, str) or not (name in _KNOWN or re.fullmatch(_OPEN, name)):
        from difflib import get_close_matches  # only for the error

        nearest = get_close_matches(str(name), _KNOWN, n=1, cutoff=0.0)
        raise DefinitionError(
            f"{where}: clients have no capability {name!r:.100}; did you mean {nearest[0]!r}? There are "
            f"{', '.join(_KNOWN)}, extensions.<name> and experimental.<name>"
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
    """Return whether an object has no members; those that are null count as absent."""
    return isinstance(value, Mapping) and all(member is None for member in value.values())


def answers_input_requests(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client declares that it answers any kind of input request."""
    return any(declares(capabilities, (name,)) for name in INPUT_CAPABILITIES)


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client shows MCP Apps (SEP-1865). A declaration without MIME types counts."""
    if not declares(capabilities, ("extensions", UI_EXTENSION)):
        return False
    types = capabilities["extensions"][UI_EXTENSION].get("mimeTypes")
    return types is None or (isinstance(types, list) and UI_MIME_TYPE in types)


def shows_forms_in_apps(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client can show an elicitation in an MCP App (draft SEP-3118)."""
    return (
        shows_apps(capabilities)
        and declares(capabilities, ELICITATION_FORM)
        and declares(capabilities, ("extensions", UI_EXTENSION, "elicitation"))
    )


def missing_capabilities(capabilities: Mapping[str, Any], wanted: Iterable[CapabilityPath]) -> dict[str, Any]:
    """Return the capabilities that a client does not declare, as the `requiredCapabilities` of -32021."""
    required: dict[str, Any] = {}
    for capability in wanted:
        if not declares(capabilities, capability):
            node = required
            for name in capability:
                node = node.setdefault(name, {})
    return required


class ClientBehavior(Struct, frozen=True):
    """A fact about a client.

    `name`: a regular expression for the whole `clientInfo.name`; None if it does not identify the client.
    `versions`: the first and the last value of `clientInfo.version` that are concerned; None for no limit.
    `breaks_on_state_only_rounds`: whether the client ends a call with an error at an InputRequiredResult that
    has `requestState` and no `inputRequests`, which the specification tells it to send again.
    `checked_with`: the release of the client that the observation was made with.
    `package`: the package of this release, if the tests install it; they fail for a newer one.
    """

    client: str
    name: str | None
    versions: tuple[str | None, str | None]
    breaks_on_state_only_rounds: bool
    source: str
    date: date
    checked_with: str
    package: str | None = None

    def applies_to(self, name: str, version: str) -> bool:
        """Return whether the row is about a client that reports this name and version."""
        if self.name is None or not re.fullmatch(self.name, name):
            return False
        first, last = self.versions
        key = version_key(version)
        return (first is None or key >= version_key(first)) and (last is None or key <= version_key(last))


_ANY: Final = (None, None)

CLIENT_BEHAVIORS: Final = (
    ClientBehavior(
        client="claude.ai",
        name=r"Anthropic/ClaudeAI",
        versions=_ANY,  # the version has been 1.0.0 for all releases
        breaks_on_state_only_rounds=True,
        source="https://github.com/anthropics/claude-ai-mcp/issues/1027",
        date=date(2026, 9, 13),
        checked_with="1.0.0",
    ),
    ClientBehavior(
        client="OpenAI Agents SDK",
        name=None,  # each of its requests is byte for byte one of the Python SDK's `Client`
        versions=_ANY,
        breaks_on_state_only_rounds=True,
        source="https://pypi.org/project/openai-agents/0.24.0/",
        date=date(2026, 11, 22),
        checked_with="0.24.0",
        package="openai-agents",
    ),
)
"""The first row that applies to a client decides."""


def breaks_on_state_only_rounds(info: Mapping[str, Any] | None) -> bool:
    """Return whether a client is known to fail at a checkpoint. `info` is its Implementation object."""
    name, version = ((info or {}).get(member) for member in ("name", "version"))
    if not isinstance(name, str):
        return False
    text = version if isinstance(version, str) else ""
    for row in CLIENT_BEHAVIORS:
        if row.applies_to(name, text):
            return row.breaks_on_state_only_rounds
    return False


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparisons; trailing zeros do not count."""
    numbers = [
        int(digits) for digits in re.findall(r"[0-9]{1,9}", version.partition("-")[0].partition("+")[0])
    ]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
