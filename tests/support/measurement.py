"""The cost of an invocation in a process that has served only one plain call.

A process imports the server, answers a plain call, and forks a process for each event, which is in a file.
Beside it may lie the `input_schema` of a tool named "generated", which the forked process defines first. It
reads the event and writes the response as Lambda's runtime does.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp_roundtrip.errors import DefinitionError

MAX_CPU_S = 20
"""CPU seconds after which a process is killed, far beyond every limit."""

ENVIRONMENT = {"MCP_AUTH_MODE": "none", "POWERTOOLS_SERVICE_NAME": "test"}


@dataclass(frozen=True)
class Cost:
    """Peak memory above the idle process and CPU time, both infinite if the process was killed.

    The unit of CPU time is that of fixed work, which the same process does afterwards (40 ms on a quiet
    machine): machines differ, and a neighbour that needs the memory slows all down.
    """

    peak_mb: float
    cpu: float
    status: int | None = None
    code: int | None = None


@contextmanager
def measuring() -> Iterator[Measure]:
    """Yield a function that measures events."""
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, get_context("spawn"), initializer=_start) as process,
    ):
        yield Measure(process, Path(folder) / "event.json")


@dataclass(frozen=True)
class Measure:
    process: ProcessPoolExecutor
    file: Path

    def __call__(self, event: Any, input_schema: Any = None) -> Cost:
        """Return the cost of an event, also of a call of the tool "generated" with this schema."""
        self.file.write_text(json.dumps(event))
        self.file.with_suffix(".schema").write_text(json.dumps(input_schema))
        return self.process.submit(_measure_in_fork, self.file).result()


def _start() -> None:
    os.environ |= ENVIRONMENT
    from support.exposed_server import server
    from support.messages import call, http_event

    server.lambda_handler(http_event(call("integers", {"items": [1]})), None)


def _measure_in_fork(file: Path) -> Cost:
    with ProcessPoolExecutor(1, get_context("fork")) as forked, suppress(BrokenProcessPool):
        return forked.submit(_measure, file).result()
    return Cost(float("inf"), float("inf"))


def _measure(file: Path) -> Cost:
    from support.exposed_server import server

    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    if schema := json.loads(file.with_suffix(".schema").read_text()):
        with suppress(DefinitionError):  # the schema is refused, and so is the call
            server.tool(name="generated", input_schema=schema)(_generated)
    idle = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    text = file.read_bytes()
    began = time.process_time()
    answer = json.dumps(server.lambda_handler(json.loads(text), None))
    cpu_s = time.process_time() - began
    peak_mb = (_kilobytes("VmHWM") - idle) / 1_024
    return Cost(round(peak_mb, 1), round(cpu_s / _cpu_s_of_fixed_work(), 1), *_summary(answer))


def _generated(arguments: dict[str, Any]) -> int:
    return len(arguments)


def _cpu_s_of_fixed_work() -> float:
    values = json.dumps([*([[]] * 100_000), "😀" * 200_000])
    began = time.process_time()
    all(repeat(True, 5_000_000))
    json.dumps(json.loads(values), ensure_ascii=False).encode()
    return time.process_time() - began


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0])


def _summary(answer: str) -> tuple[int | None, int | None]:
    """Return the HTTP status and the code of an error."""
    found = json.loads(answer) or {}
    body = found.get("body", "{}") if "statusCode" in found else answer
    try:
        code = json.loads(body).get("error", {}).get("code")
    except (ValueError, AttributeError):  # a notification has no body, a stream is not JSON
        code = None
    return found.get("statusCode"), code
