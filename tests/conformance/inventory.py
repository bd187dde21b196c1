"""The targets of the official suite, and the scenarios that are run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FIXTURE: Final = ROOT / "tests" / "conformance_server" / "template.yaml"
EXAMPLES: Final = ROOT / "template.yaml"

REVISION: Final = "2026-07-28"
LEGACY_REVISION: Final = "2025-11-25"
EXTENSION: Final = "extension"

RECORD: Final = Path(__file__).with_name("expected.json")
EXPECTED: Final[Mapping[str, Mapping[str, int]]] = json.loads(RECORD.read_bytes())
"""The scenarios that are run, by record, in their order, and how many of their checks must pass.

The last one gives calls 500 ms, in which a busy computer may not start two environments.
"""

_STREAM: Final = "the server asks in the middle of a call, which needs a stream that stays open"
_LEVEL: Final = "the server refuses `logging/setLevel`, because it stores no level"
_SUBSCRIPTION: Final = "the server refuses subscriptions, because it stores none"

NOT_RUN: Final[Mapping[str, Mapping[str, str]]] = {
    LEGACY_REVISION: {
        "tools-call-elicitation": _STREAM,
        "tools-call-sampling": _STREAM,
        "elicitation-sep1034-defaults": _STREAM,
        "elicitation-sep1330-enums": _STREAM,
        "server-sse-polling": "a stream is resumed from stored events, and the server stores none",
        "logging-set-level": _LEVEL,
        "tools-call-with-logging": _LEVEL,
        "resources-subscribe": _SUBSCRIPTION,
        "resources-unsubscribe": _SUBSCRIPTION,
    },
}
"""Reasons why scenarios of a revision or of an extension are not run."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A server the suite is run against. `record` names its scenarios in `expected.json`.

    `origins` is the parameter with the accepted origins: the suite says the server's own address is one.
    """

    title: str
    record: str
    template: Path
    path: str = "/mcp"
    revision: str = REVISION
    fresh: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    origins: str = "AllowedOrigins"
    excused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def scenarios(self) -> Sequence[str]:
        return tuple(EXPECTED[self.record])


_FIXTURE_TOOL: Final = "it calls a tool that only the conformance server has"
_NO_FIXTURE: Final = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability": _FIXTURE_TOOL,
        "sep-2575-missing-capability-http-400": _FIXTURE_TOOL,
        "sep-2575-http-server-no-independent-requests-on-stream": _FIXTURE_TOOL,
        "sep-2575-server-no-log-without-loglevel": _FIXTURE_TOOL,
    }
}

# One record for three: a client sees neither that a process is new nor what is behind a front door.
_CURRENT: Final = (
    Target("conformance server", "conformance_server", FIXTURE),
    Target("conformance server, a new process for every request", "conformance_server", FIXTURE, fresh=True),
    Target("conformance server, through a front door", "conformance_server", FIXTURE, path="/front_door"),
    Target(
        "template.yaml, through its front door",
        "examples",
        EXAMPLES,
        parameters={"AuthMode": "none"},
        origins="Platform.AllowedOrigins",
        excused=_NO_FIXTURE,
    ),
)


def _legacy(target: Target) -> Target:
    """Return the same server for clients of `LEGACY_REVISION`."""
    return replace(
        target,
        title=f"{target.title}, {LEGACY_REVISION}",
        record=f"{target.record}_legacy",
        revision=LEGACY_REVISION,
        excused={},
    )


TARGETS: Final = (*_CURRENT, *map(_legacy, _CURRENT))


def unaccounted(offered: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the scenarios for our revisions or an extension that are neither run nor excluded.

    `offered` maps each scenario to the revisions it applies to, or to `EXTENSION`.
    """
    current, legacy = EXPECTED["conformance_server"], EXPECTED["conformance_server_legacy"]
    run = {REVISION: current, LEGACY_REVISION: legacy, EXTENSION: current}
    return sorted(
        f"{scenario} ({revision})"
        for scenario, revisions in offered.items()
        for revision in revisions
        if revision in run and scenario not in (*run[revision], *NOT_RUN.get(revision, ()))
    )
