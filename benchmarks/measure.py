"""Run implementations in fresh processes, interleaved, so that other load affects all of them equally."""

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
from invocations import RESIDENT_AFTER

HERE = Path(__file__).parent
ARGUMENTS = {"a": 20, "b": 22}
EXPECTED_SUM = "42"

WARM_UP_CALLS = RESIDENT_AFTER
"""Untimed calls that fill caches and let the interpreter specialize its bytecode."""

# The variables that template.yaml gives a function. Nothing is inherited from the caller.
ENVIRONMENT: Mapping[str, str] = {
    "AWS_REGION": "eu-west-1",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "MCP_AUTH_MODE": "none",
    "MCP_ISSUER": "bench",
    "MCP_AUDIENCE": f"https://{payloads.HOST}/mcp",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


class BenchmarkError(Exception):
    """A process failed or returned a wrong result. The message names the process and the problem."""


@dataclass(frozen=True, slots=True, eq=False)  # hashed by identity, because a dict has no hash
class Implementation:
    """A module in `implementations/`, an event in its protocol, and its environment variables."""

    module: str
    title: str
    event: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)


OURS = Implementation("roundtrip", "mcp-roundtrip", payloads.tool_call("add", ARGUMENTS))
MCP = Implementation("mcp_mangum", "mcp + Mangum", payloads.tool_call("add", ARGUMENTS))
MCP_WITHOUT_RICH = Implementation(
    "mcp_without_rich", "mcp + Mangum without rich", payloads.tool_call("add", ARGUMENTS)
)
AWSLABS = Implementation("awslabs", "awslabs handler", payloads.legacy_tool_call("add", ARGUMENTS))
JSON_ONLY = Implementation("json_only", "JSON only", payloads.legacy_tool_call("add", ARGUMENTS))
IMPLEMENTATIONS = (OURS, MCP, MCP_WITHOUT_RICH, AWSLABS, JSON_ONLY)


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over all runs of an implementation, in milliseconds and MiB."""

    first_ms: float
    process_ms: float
    warm_ms: float
    peak_mib: float


def measure_handlers(
    implementations: Sequence[Implementation], first_runs: int, warm_runs: int, warm_calls: int
) -> dict[Implementation, Figures]:
    """Measure first responses, warm calls and memory. Raise BenchmarkError."""
    for each in implementations:
        run_handler(each, 1)  # writes the bytecode caches
    first = interleave(implementations, first_runs, lambda each: run_handler(each, 1))
    warm = interleave(implementations, warm_runs, lambda each: run_handler(each, WARM_UP_CALLS + warm_calls))
    return {
        implementation: Figures(
            median(sample["first_ms"] for sample in first[implementation]),
            median(sample["process_ms"] for sample in first[implementation]),
            median(ms for sample in warm[implementation] for ms in sample["warm_ms"][WARM_UP_CALLS - 1 :]),
            median(sample["peak_kib"] / 1024 for sample in warm[implementation]),
        )
        for implementation in implementations
    }


def interleave(
    implementations: Sequence[Implementation],
    runs: int,
    take_sample: Callable[[Implementation], dict[str, Any]],
) -> dict[Implementation, list[dict[str, Any]]]:
    """Take `runs` samples of each implementation, in alternating order."""
    samples: dict[Implementation, list[dict[str, Any]]] = {
        implementation: [] for implementation in implementations
    }
    for turn in range(runs):
        for each in implementations if turn % 2 else reversed(implementations):
            samples[each].append(take_sample(each))
    return samples


def run_handler(implementation: Implementation, calls: int) -> dict[str, Any]:
    """Invoke a handler `calls` times in a fresh process. Raise BenchmarkError if a sum is wrong."""
    found = run_script(
        "invocations.py",
        implementation.module,
        str(calls),
        given=implementation.event,
        variables=implementation.variables,
    )
    for body in found["bodies"]:
        if EXPECTED_SUM not in body:
            raise BenchmarkError(f"{implementation.title} returned {body}")
    return found


def run_script(
    script: str,
    *arguments: str,
    given: Any = None,
    variables: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> dict[str, Any]:
    """Run a script and return the figures that it marshals into a pipe. Raise BenchmarkError if it fails.

    The file descriptor of the pipe is the last argument of the script, and `given` is marshalled to its
    stdin. Its environment consists of ENVIRONMENT and `variables`.
    """
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as pipe, tempfile.TemporaryFile() as log:
        started = perf_counter()
        try:
            completed = subprocess.run(
                [python, HERE / script, *arguments, str(writer)],
                input=marshal.dumps(given),
                stdout=log,  # implementations log to stdout or to stderr
                stderr=log,
                pass_fds=[writer],
                env={**ENVIRONMENT, **(variables or {})},
                check=False,
            )
        finally:
            os.close(writer)
        process_ms = (perf_counter() - started) * 1000
        figures = pipe.read()
        if completed.returncode or not figures:
            log.seek(0)
            output = log.read().decode(errors="replace")
            raise BenchmarkError(f"{script} {' '.join(arguments)} failed:\n{output[-2000:]}")
    return {**marshal.loads(figures), "process_ms": process_ms}
