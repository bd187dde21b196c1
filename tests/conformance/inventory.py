"""The targets of the official suite, and the scenarios that are run."""

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

_FEATURES: Final = (
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
)
_SKILLS: Final = ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")
SCENARIOS: Final = (
    *_FEATURES,
    "server-sse-multiple-streams",
    "sep-2164-resource-not-found",
    "caching",
    "http-header-validation",
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
    *_SKILLS,
    # Last: it gives calls 500 ms, in which a busy computer may not start two environments.
    "server-stateless",
)
LEGACY_SCENARIOS: Final = (
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "ping",
    *_FEATURES,
)

_LISTS: Final = ("tools-list", "resources-list", "prompts-list")
ANY_SERVER: Final = (
    *_LISTS,
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "sep-2164-resource-not-found",
    "caching",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    *_SKILLS,
    "server-stateless",
)
ANY_LEGACY_SERVER: Final = (
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "ping",
    *_LISTS,
    "dns-rebinding-protection",
)

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
    """A server the suite is run against. `record` names its figures in `expected.json`.

    `origins` is the parameter with the accepted origins: the suite says the server's own address is one.
    """

    title: str
    record: str
    template: Path
    scenarios: Sequence[str]
    path: str = "/mcp"
    revision: str = REVISION
    fresh: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    origins: str = "AllowedOrigins"
    excused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


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
    Target("conformance server", "conformance_server", FIXTURE, SCENARIOS),
    Target(
        "conformance server, a new process for every request",
        "conformance_server",
        FIXTURE,
        SCENARIOS,
        fresh=True,
    ),
    Target(
        "conformance server, through a front door",
        "conformance_server",
        FIXTURE,
        SCENARIOS,
        path="/front_door",
    ),
    Target(
        "template.yaml, through its front door",
        "examples",
        EXAMPLES,
        ANY_SERVER,
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
        scenarios=LEGACY_SCENARIOS if target.template == FIXTURE else ANY_LEGACY_SERVER,
        revision=LEGACY_REVISION,
        excused={},
    )


TARGETS: Final = (*_CURRENT, *map(_legacy, _CURRENT))


def unaccounted(offered: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the scenarios for our revisions or an extension that are neither run nor excluded.

    `offered` maps each scenario to the revisions it applies to, or to `EXTENSION`.
    """
    run = {REVISION: SCENARIOS, LEGACY_REVISION: LEGACY_SCENARIOS, EXTENSION: SCENARIOS}
    return sorted(
        f"{scenario} ({revision})"
        for scenario, revisions in offered.items()
        for revision in revisions
        if revision in run and scenario not in (*run[revision], *NOT_RUN.get(revision, ()))
    )
