"""The cost of an invocation in a process that has served only one plain call.

`python measured.py` imports the server, answers a plain call, and forks a process for each line of stdin:
the path of a file with an event's JSON. Beside it may lie the `input_schema` of a tool named "generated",
which that process defines first. It reads the event and writes the response as Lambda's
runtime does, and prints a `Cost` as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp_roundtrip.errors import DefinitionError

MAX_CPU_S = 20
"""CPU seconds after which a process is killed, far beyond every limit."""


@dataclass(frozen=True)
class Cost:
    """Peak memory above the idle process and CPU time, both infinite if the process was killed.

    The unit of the CPU time is that of a loop of a million steps, because machines differ.
    """

    peak_mb: float
    cpu_loops: float
    status: int | None = None
    code: int | None = None


@contextmanager
def measuring() -> Iterator[Measure]:
    """Yield a function that measures events."""
    environment = {"MCP_AUTH_MODE": "none", "POWERTOOLS_SERVICE_NAME": "test"}
    command = [sys.executable, __file__]
    paths = str(Path(__file__).parents[1])
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, "PYTHONPATH": paths},
        ) as process,
    ):
        yield Measure(process, Path(folder) / "event.json")


@dataclass(frozen=True)
class Measure:
    process: subprocess.Popen[str]
    file: Path

    def __call__(self, event: Any, input_schema: Any = None) -> Cost:
        """Return the cost of an event, also of a call of the tool "generated" with this schema."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.file.write_text(json.dumps(event))
        self.file.with_suffix(".schema").write_text(json.dumps(input_schema))
        self.process.stdin.write(f"{self.file}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            found = json.loads(line)
            if "peak_mb" in found:  # the other lines are the log of the server
                return Cost(**found)
        raise AssertionError("the server has ended")


def main() -> None:
    from support.exposed_server import server
    from support.messages import call, http_event

    server.lambda_handler(http_event(call("integers", {"items": [1]})), None)
    loop_s = _cpu_time_of_million_steps()
    for line in sys.stdin:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
            _measure(server, Path(line.strip()), loop_s)
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            print(json.dumps({"peak_mb": float("inf"), "cpu_loops": float("inf")}), flush=True)


def _measure(server: Any, file: Path, loop_s: float) -> None:
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
    cost = {"peak_mb": round(peak_mb, 1), "cpu_loops": round(cpu_s / loop_s, 1)}
    print(json.dumps({**cost, **_summary(answer)}))


def _generated(arguments: dict[str, Any]) -> int:
    return len(arguments)


def _cpu_time_of_million_steps() -> float:
    millions = 10  # the clock of CPU time advances in steps of 10 ms on some machines
    began = time.process_time()
    for _ in range(millions * 1_000_000):
        pass
    return (time.process_time() - began) / millions


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0])


def _summary(answer: str) -> dict[str, Any]:
    found = json.loads(answer) or {}
    body = found.get("body", "{}") if "statusCode" in found else answer
    try:
        code = json.loads(body).get("error", {}).get("code")
    except (ValueError, AttributeError):  # a notification has no body, a stream is not JSON
        code = None
    return {"status": found.get("statusCode"), "code": code}


if __name__ == "__main__":
    main()
