"""Measure the price of log lines and metrics, which Powertools writes."""

import subprocess
import sys
from collections.abc import Mapping

import measure
from tables import Target, table

CALLS = 100
IMPORT_RUNS = 15

# Lambda's runtime client has imported part of what Powertools imports.
IMPORT = """
import time, awslambdaric.bootstrap, msgspec
began = time.process_time()
import aws_lambda_powertools.logging, aws_lambda_powertools.metrics
print(time.process_time() - began)
"""


def measure_logs(calls: int = CALLS) -> Mapping[str, float]:
    """Return the microseconds of a line, of a line with metrics, and of the import in a new process."""
    found: Mapping[str, float] = measure.run_script("log_lines.py", str(calls))["us"]
    return {**found, "the import": min(_import_us() for _ in range(IMPORT_RUNS))}


def _import_us() -> float:
    command = [sys.executable, "-c", IMPORT]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) * 1e6


def log_table(measured: Mapping[str, float]) -> str:
    rows = [(name, f"{us:.1f}") for name, us in measured.items()]
    return table("Log lines and metrics with Powertools, CPU time", ("", "us"), rows)


def log_targets(measured: Mapping[str, float]) -> list[Target]:
    metrics = measured["a line with metrics"] - measured["a line"]
    return [
        Target("import of Powertools, ms", measured["the import"] / 1000, 13),
        Target("log line, us", measured["a line"], 55),
        Target("metrics of a call, us", metrics, 35),
    ]
