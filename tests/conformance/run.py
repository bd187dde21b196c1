"""Run the official MCP conformance suite over HTTP against real Lambda runtime processes.

    python tests/conformance/run.py [--record] [SCENARIO ...]

Four servers: the one in `tests/conformance_server`, the same with a new process for every request, the same
through a front door, and the application of `template.yaml` behind its own. Fails on a check that fails or
warns without an excuse, on a scenario without results, on fewer passes than `expected.json` says; `--record`
rewrites that file.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from suite import Suite, install
from verdict import Row, judge

from mcp_roundtrip.local import serve

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache" / "conformance"
EXPECTED: Final = Path(__file__).with_name("expected.json")

FIXTURE: Final = ROOT / "tests" / "conformance_server" / "template.yaml"
EXAMPLES: Final = ROOT / "template.yaml"

SCENARIOS: Final = (
    "server-stateless",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "http-header-validation",
    "dns-rebinding-protection",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
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
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
ANY_SERVER: Final = (
    "server-stateless",
    "tools-list",
    "http-header-validation",
    "dns-rebinding-protection",
    "input-required-result-unsupported-methods",
)

_FIXTURE_TOOL: Final = "it calls a tool that only the conformance server has"


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A server the suite is run against. `record` names its figures in `expected.json`."""

    title: str
    record: str
    template: Path
    scenarios: Sequence[str]
    path: str = "/mcp"
    fresh: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


TARGETS: Final = (
    Target("conformance server", "conformance_server", FIXTURE, SCENARIOS),
    Target(
        "conformance server, a new process for every request",
        "conformance_server",
        FIXTURE,
        SCENARIOS,
        fresh=True,
    ),
    # Under the same record: a client cannot tell a front door from the server behind it.
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
        excused={
            "server-stateless": {
                "sep-2575-server-rejects-undeclared-capability": _FIXTURE_TOOL,
                "sep-2575-missing-capability-http-400": _FIXTURE_TOOL,
                "sep-2575-http-server-no-independent-requests-on-stream": _FIXTURE_TOOL,
                "sep-2575-server-no-log-without-loglevel": _FIXTURE_TOOL,
            }
        },
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="only these")
    parser.add_argument("--record", action="store_true", help="rewrite expected.json")
    options = parser.parse_args(arguments)
    if unknown := set(options.scenarios) - set(SCENARIOS):
        parser.error(f"no scenario of this project: {', '.join(sorted(unknown))}")
    if options.record and options.scenarios:
        parser.error("--record needs all scenarios")
    try:
        suite = install(CACHE)
    except subprocess.SubprocessError as error:
        print(f"error: the suite could not be installed: {error}", file=sys.stderr)
        return 2
    expected = {} if options.record else json.loads(EXPECTED.read_bytes())
    rows = {target: run(target, suite, options.scenarios, expected) for target in TARGETS}
    report(rows)
    if any(row.problems for row in _flat(rows)):
        print(f"\nWhat the suite and the functions said: {CACHE / 'results'}")
        return 1
    if options.record:
        record(rows)
    return 0


def run(
    target: Target, suite: Suite, only: Sequence[str], expected: Mapping[str, Mapping[str, int]]
) -> list[Row]:
    """Serve a target and run its scenarios."""
    results = CACHE / "results" / target.title.replace(" ", "_").replace(",", "")
    results.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    origin = {"AllowedOrigins": f"http://127.0.0.1:{port}"}
    rows = []
    with (
        (results / "functions.log").open("w") as log,
        serve(
            target.template,
            port=port,
            fresh=target.fresh,
            parameters={**target.parameters, **origin},
            log=lambda line: print(line, file=log, flush=True),
        ) as app,
    ):
        for scenario in target.scenarios:
            if only and scenario not in only:
                continue
            checks = suite.run(scenario, app.url(target.path), results / scenario)
            at_least = expected.get(target.record, {}).get(scenario, 0)
            rows.append(judge(scenario, checks, excused=target.excused.get(scenario, {}), at_least=at_least))
    return rows


def report(rows: Mapping[Target, Sequence[Row]]) -> None:
    """Print the table, then what is excused and what is wrong."""
    width = max(map(len, SCENARIOS))
    print(f"{'scenario':{width}}  passed  failed  warnings  skipped  excused")
    for target, of_target in rows.items():
        print(target.title)
        for row in of_target:
            counts = f"{row.passed:6}  {row.failed:6}  {row.warnings:8}  {row.skipped:7}  {row.excused:7}"
            print(f"{row.scenario:{width}}  {counts}")
    print(f"{'total':{width}}  {sum(row.passed for row in _flat(rows)):6}")
    for target in rows:
        for scenario, excuses in target.excused.items():
            for check, reason in excuses.items():
                print(f"excused: {target.title}: {scenario}: {check}: {reason}")
    for target, of_target in rows.items():
        for row in of_target:
            for problem in row.problems:
                print(f"PROBLEM: {target.title}: {row.scenario}: {problem}")


def record(rows: Mapping[Target, Sequence[Row]]) -> None:
    """Write `expected.json`: of targets that share a record, the lower figure."""
    figures: dict[str, dict[str, int]] = {}
    for target, of_target in rows.items():
        known = figures.setdefault(target.record, {})
        for row in of_target:
            known[row.scenario] = min(row.passed, known.get(row.scenario, row.passed))
    EXPECTED.write_text(json.dumps(figures, indent=2) + "\n")


def _flat(rows: Mapping[Target, Iterable[Row]]) -> list[Row]:
    return [row for of_target in rows.values() for row in of_target]


def _free_port() -> int:
    # The suite wants the server's own address accepted as an Origin, so the port is needed before it serves.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
