"""Runs the contenders in fresh processes, in turns, so that a busy moment hits all of them alike."""

import marshal
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import payloads
from probe import RESIDENT_AFTER

HERE = Path(__file__).parent
ARGUMENTS = {"a": 20, "b": 22}
TOTAL = "42"

SETTLED = RESIDENT_AFTER
"""Calls that are not timed: caches fill, and the interpreter specialises."""

# Nothing of the caller's environment, but all that template.yaml gives a function.
ENVIRONMENT: Mapping[str, str] = {
    "AWS_REGION": "eu-west-1",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "MCP_AUTH_MODE": "none",
    "MCP_ISSUER": "bench",
    "MCP_AUDIENCE": f"https://{payloads.HOST}/mcp",
    "POWERTOOLS_LOG_LEVEL": "INFO",
}


class DidNotRun(Exception):
    """A process failed, or its contender gave a wrong answer; the text says which and how."""


@dataclass(frozen=True, slots=True, eq=False)  # compared and hashed as the object it is: a dict has no hash
class Contender:
    """A module in `contenders/`, the event its protocol wants, and variables it runs with."""

    module: str
    title: str
    event: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)


OURS = Contender("ours", "mcp-roundtrip", payloads.current("add", ARGUMENTS))
MCP = Contender("mcp_mangum", "mcp + Mangum", payloads.current("add", ARGUMENTS))
MCP_LEAN = Contender("mcp_lean", "the same without rich", payloads.current("add", ARGUMENTS))
AWSLABS = Contender("awslabs", "awslabs handler", payloads.legacy("add", ARGUMENTS))
BARE = Contender("bare", "bare JSON", payloads.legacy("add", ARGUMENTS))
CONTENDERS = (OURS, MCP, MCP_LEAN, AWSLABS, BARE)


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over all runs of a contender; milliseconds and MiB."""

    first_ms: float
    process_ms: float
    warm_ms: float
    peak_mib: float


def figures(
    contenders: Sequence[Contender], first_runs: int, warm_runs: int, warm_calls: int
) -> dict[Contender, Figures]:
    """Measure the contenders. Raises DidNotRun."""
    for contender in contenders:
        run(contender, 1)  # leaves bytecode behind
    first = in_turns(contenders, first_runs, lambda contender: run(contender, 1))
    warm = in_turns(contenders, warm_runs, lambda contender: run(contender, SETTLED + warm_calls))
    return {
        contender: Figures(
            median(sample["first_ms"] for sample in first[contender]),
            median(sample["process_ms"] for sample in first[contender]),
            median(ms for sample in warm[contender] for ms in sample["warm_ms"][SETTLED - 1 :]),
            median(sample["peak_kib"] / 1024 for sample in warm[contender]),
        )
        for contender in contenders
    }


def in_turns(
    contenders: Sequence[Contender], runs: int, measured: Callable[[Contender], dict[str, Any]]
) -> dict[Contender, list[dict[str, Any]]]:
    """`runs` samples of each contender; every other turn in the opposite order."""
    samples: dict[Contender, list[dict[str, Any]]] = {contender: [] for contender in contenders}
    for turn in range(runs):
        for contender in contenders if turn % 2 else reversed(contenders):
            samples[contender].append(measured(contender))
    return samples


def run(contender: Contender, calls: int) -> dict[str, Any]:
    """One fresh process that answers `calls` calls. Raises DidNotRun."""
    found = process(
        "probe.py", contender.module, str(calls), given=contender.event, variables=contender.variables
    )
    for body in found["bodies"]:
        if TOTAL not in body:
            raise DidNotRun(f"{contender.title} answered {body}")
    return found


def process(
    script: str,
    *arguments: str,
    given: Any = None,
    variables: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> dict[str, Any]:
    """Run a script that marshals its figures into a pipe, the last argument. Raises DidNotRun.

    `variables` go into its environment besides ENVIRONMENT.
    """
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as pipe, tempfile.TemporaryFile() as log:
        started = perf_counter()
        try:
            ended = subprocess.run(
                [python, HERE / script, *arguments, str(writer)],
                input=marshal.dumps(given),
                stdout=log,  # some contenders log there, the others to stderr: a file for all of them
                stderr=log,
                pass_fds=[writer],
                env={**ENVIRONMENT, **(variables or {})},
                check=False,
            )
        finally:
            os.close(writer)
        process_ms = (perf_counter() - started) * 1000
        written = pipe.read()
        if ended.returncode or not written:
            log.seek(0)
            said = log.read().decode(errors="replace")
            raise DidNotRun(f"{script} {' '.join(arguments)} failed:\n{said[-2000:]}")
    return {**marshal.loads(written), "process_ms": process_ms}
