"""Run the official MCP conformance suite over HTTP against real Lambda runtime processes.

    python tests/conformance/run.py [--record] [SCENARIO ...]

Four servers: the one in `tests/conformance_server`, the same with a new process for every request, the same
through a front door, and the application of `template.yaml` behind its own; all once more as clients of
2025-11-25 see them. Fails on a check that fails or warns without an excuse, on a scenario without results, on
fewer passes than `expected.json` says, on a scenario of the suite that neither `expected.json` nor
`inventory.py` has; `--record` rewrites the figures of `expected.json`. A run of all scenarios without a
problem writes `results.json`, docs/reference/conformance.md and the badge.
"""

import argparse
import json
import platform
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from inventory import EXPECTED, NOT_RUN, RECORD, ROOT, TARGETS, Target, unaccounted
from publication import COUNTS, badge, page
from suite import NODE, SUITE, Suite, install
from verdict import Row, judge

from mcp_roundtrip_tools.run.serving import serve

CACHE: Final = ROOT / ".cache" / "conformance"
RESULTS: Final = Path(__file__).with_name("results.json")
PAGE: Final = ROOT / "docs/reference/conformance.md"
BADGE: Final = ROOT / "docs/images/conformance.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="only these")
    parser.add_argument("--record", action="store_true", help="rewrite expected.json")
    options = parser.parse_args(arguments)
    if unknown := set(options.scenarios) - {name for target in TARGETS for name in target.scenarios}:
        parser.error(f"no scenario of this project: {', '.join(sorted(unknown))}")
    if options.record and options.scenarios:
        parser.error("--record needs all scenarios")
    try:
        suite = install(CACHE)
    except subprocess.SubprocessError as error:
        print(f"error: the suite could not be installed: {error}", file=sys.stderr)
        return 2
    if unmentioned := unaccounted(suite.scenarios()):
        print(
            f"error: neither in expected.json nor in inventory.py: {', '.join(unmentioned)}", file=sys.stderr
        )
        return 2
    expected = {} if options.record else EXPECTED
    only = options.scenarios
    chosen = {target: [each for each in target.scenarios if not only or each in only] for target in TARGETS}
    rows = {target: run(target, suite, names, expected) for target, names in chosen.items() if names}
    report(rows)
    if any(row.problems for of_target in rows.values() for row in of_target):
        print(f"\nWhat the suite and the functions said: {CACHE / 'results'}")
        return 1
    if options.record:
        record(rows)
    if not options.scenarios:
        publish(results_of(rows))
    return 0


def run(
    target: Target, suite: Suite, scenarios: Sequence[str], expected: Mapping[str, Mapping[str, int]]
) -> list[Row]:
    results = CACHE / "results" / target.title.replace(" ", "_").replace(",", "")
    results.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    rows = []
    with (
        (results / "functions.log").open("w") as log,
        serve(
            target.template,
            port=port,
            fresh=target.fresh,
            parameters={**target.parameters, target.origins: f"http://127.0.0.1:{port}"},
            log=lambda line: print(line, file=log, flush=True),
        ) as app,
    ):
        for scenario in scenarios:
            checks = suite.run(scenario, target.revision, app.url(target.path), results / scenario)
            at_least = expected.get(target.record, {}).get(scenario, 0)
            rows.append(judge(scenario, checks, excused=target.excused.get(scenario, {}), at_least=at_least))
    return rows


def report(rows: Mapping[Target, Sequence[Row]]) -> None:
    """Print the counts of each server, and the problems. The page has the rest."""
    for target, of_target in rows.items():
        counts = ", ".join(f"{sum(getattr(row, name) for row in of_target)} {name}" for name in COUNTS)
        print(f"{target.title}: {len(of_target)} scenarios, {counts}")
        for row in of_target:
            for problem in row.problems:
                print(f"PROBLEM: {row.scenario}: {problem}")


def record(rows: Mapping[Target, Sequence[Row]]) -> None:
    """Write `expected.json` with the lowest figure of targets that share a record."""
    figures: dict[str, dict[str, int]] = {}
    for target, of_target in rows.items():
        known = figures.setdefault(target.record, {})
        for row in of_target:
            known[row.scenario] = min(row.passed, known.get(row.scenario, row.passed))
    RECORD.write_text(json.dumps(figures, indent=2) + "\n")


def results_of(rows: Mapping[Target, Sequence[Row]]) -> dict[str, Any]:
    """Return what `results.json` says of a run of all scenarios."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "suite": SUITE,
        "node": NODE.partition("==")[2],
        "python": platform.python_version(),
        "servers": [
            {
                "title": target.title,
                "revision": target.revision,
                "excuses": target.excused,
                "scenarios": {
                    row.scenario: {name: asdict(row)[name] for name in COUNTS} for row in of_target
                },
            }
            for target, of_target in rows.items()
        ],
    }


def publish(results: Mapping[str, Any]) -> None:
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results, NOT_RUN))
    BADGE.write_text(badge(results))


def _free_port() -> int:
    # The suite requires the address of the server as an allowed Origin, so the port is chosen before.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
