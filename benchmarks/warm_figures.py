"""Measure what hooks, traces, and log lines and metrics add to a warm call."""

import os
import subprocess
import sys
from collections.abc import Mapping

import measure
from tables import Target, table

CALLS = 100
IMPORT_RUNS = 15

# Powertools writes log lines and metrics. Lambda's runtime client and the layer itself have imported part of
# what it imports, and the layer collects garbage rarely.
IMPORT = """
import time, awslambdaric.bootstrap, mcp_roundtrip.engine.pass_state, mcp_roundtrip.server.registry
began = time.process_time()
import aws_lambda_powertools.logging, aws_lambda_powertools.metrics
print(time.process_time() - began)
"""

WarmFigures = Mapping[str, Mapping[str, float]]
"""Microseconds of a call by the number of "hooks" and by "traces", and of "lines" and their import."""


def measure_warm_calls() -> WarmFigures:
    """Measure calls in one process, and the import in new ones. Raise BenchmarkError."""
    found = measure.run_script("warm_calls.py", str(CALLS))
    lines = {**found["lines"], "the import": min(_import_us() for _ in range(IMPORT_RUNS))}
    return {"hooks": found["hooks"], "traces": found["traces"], "lines": lines}


def _import_us() -> float:
    command = [sys.executable, "-c", IMPORT]
    on_lambda = {**os.environ, "AWS_LAMBDA_RUNTIME_API": "127.0.0.1"}
    ended = subprocess.run(command, capture_output=True, check=True, env=on_lambda, text=True)
    return float(ended.stdout) * 1e6


def warm_tables(measured: WarmFigures) -> tuple[str, ...]:
    """Format one table for each of the three."""
    hooks, traces, lines = measured["hooks"], measured["traces"], measured["lines"]
    of_hooks = [(name, f"{us:.1f}", f"{us / hooks['0']:.3f}") for name, us in hooks.items()]
    of_traces = [(name, f"{us:.1f}", f"{us / traces['off']:.3f}") for name, us in traces.items()]
    of_lines = [(name, f"{us:.1f}") for name, us in lines.items()]
    return (
        table("Warm tools/call by number of hooks, CPU time", ("hooks", "us", "/ none"), of_hooks),
        table("Warm tools/call with traces (two spans), CPU time", ("traces", "us", "/ off"), of_traces),
        table("Log lines and metrics with Powertools, CPU time", ("", "us"), of_lines),
    )


def warm_targets(measured: WarmFigures) -> list[Target]:
    hooks, traces, lines = measured["hooks"], measured["traces"], measured["lines"]
    return [
        # The first one also adds the object that all hooks of a pass share.
        Target("first hook, us", hooks["1"] - hooks["0"], 5),
        Target("each further hook, us", (hooks["10"] - hooks["1"]) / 9, 5),
        # Starting the thread that exports the spans is up to half of it.
        Target("traces of a call, us", traces["on"] - traces["off"], 600),
        Target("import of Powertools, ms", lines["the import"] / 1000, 13),
        Target("log line, us", lines["a line"], 55),
        Target("metrics of a call, us", lines["a line with metrics"] - lines["a line"], 35),
    ]
