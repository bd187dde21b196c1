"""Measure the time that a front door adds to a call.

A stub in another process on 127.0.0.1 answers Lambda's Invoke at once with a recorded response of the tool.
The measured time is therefore the front door's own time, including one Invoke request.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import measure
from implementations import roundtrip
from mcp_roundtrip_tools.catalog.catalog import catalog_lists
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.template.model import Function
from measure import OURS, Figures, Implementation
from stub_server import serve_stub
from tables import Target, table

OWNER, FUNCTION = "roundtrip", "bench-roundtrip"
TOOL, FRONT_DOOR = "tool", "front door, including one Invoke"


def measure_forwarding(first_runs: int, warm_runs: int, warm_calls: int) -> dict[str, Figures]:
    """Measure the same call at the tool and at the front door. Raise BenchmarkError."""
    with _front_door() as door:
        measured = measure.measure_handlers((OURS, door), first_runs, warm_runs, warm_calls)
    return {TOOL: measured[OURS], FRONT_DOOR: measured[door]}


def forwarding_table(measured: Mapping[str, Figures]) -> str:
    rows = [
        (title, f"{each.first_ms:.4g}", f"{each.warm_ms:.3f}", f"{each.peak_mib:.4g}")
        for title, each in measured.items()
    ]
    title = "Forwarded call: own time of each function; Invoke is stubbed in another process on 127.0.0.1"
    return table(title, ("", "first response, ms", "warm, ms", "peak memory, MiB"), rows)


def forwarding_targets(measured: Mapping[str, Figures]) -> list[Target]:
    return [Target(f"{FRONT_DOOR}, ms", measured[FRONT_DOOR].warm_ms, 3)]


@contextmanager
def _front_door() -> Iterator[Implementation]:
    """Yield a front door whose Invoke endpoint is available until the block ends."""
    [body] = measure.run_handler(OURS, 1)["bodies"]
    response = {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}
    outcome = InvocationResult(json.dumps(response).encode())
    api = LambdaApi(_functions, lambda *invocation: outcome)
    with serve_stub(api.respond) as url, tempfile.TemporaryDirectory() as folder:
        catalog = Path(folder, "catalog.json")
        catalog.write_text(json.dumps(catalog_lists({OWNER: roundtrip.server})), encoding="utf-8")
        yield Implementation("front_door", FRONT_DOOR, OURS.event, _environment_variables(catalog, url))


def _functions() -> dict[str, Function]:
    return {
        FUNCTION: Function(FUNCTION, "roundtrip.handler", Path(roundtrip.__file__).parent, (), {}, 29, 1024)
    }


def _environment_variables(catalog: Path, endpoint_url: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": measure.ENVIRONMENT["AWS_REGION"],
        "AWS_ENDPOINT_URL_LAMBDA": endpoint_url,
        "FRONT_DOOR_CATALOG": str(catalog),
        "MCP_OWNERS": json.dumps({OWNER: FUNCTION}),
    }
