"""What clients are known to do that the specification does not lead a server to expect.

A row is a fact about released versions of one client, with its source and the date of the observation. Remove
the row when the client is fixed. Clients without a row are taken to follow the specification.

A row without a name is about a client that sends the same as others. The official Python SDK calls every
client `mcp` that sets no name of its own. Its `ClientSession` raises at each InputRequiredResult, while its
`Client` follows them. `server.plan` goes by what they have in common: they declare no input capability.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from msgspec import Struct


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
