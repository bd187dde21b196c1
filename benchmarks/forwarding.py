"""What a front door costs a call: Lambda's Invoke is another process on 127.0.0.1, which answers at once with
what the tool has answered before. So all the time that is measured is the front door's, one Invoke included.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import measure
from contenders import ours
from mcp_roundtrip_local.catalog import contents
from mcp_roundtrip_local.execution.environment import Outcome
from mcp_roundtrip_local.services.lambda_api import LambdaApi
from mcp_roundtrip_local.template.model import Function
from measure import OURS, Contender, Figures
from stand_in import served
from tables import Target, table

OWNER, FUNCTION = "ours", "bench-ours"
TOOL, FRONT_DOOR = "the tool", "the front door, one Invoke included"


def figures(first_runs: int, warm_runs: int, warm_calls: int) -> dict[str, Figures]:
    """What each of TOOL and FRONT_DOOR takes for the same call. Raises DidNotRun."""
    with _front_door() as door:
        measured = measure.figures((OURS, door), first_runs, warm_runs, warm_calls)
    return {TOOL: measured[OURS], FRONT_DOOR: measured[door]}


def forwarding_table(measured: Mapping[str, Figures]) -> str:
    rows = [
        (title, f"{each.first_ms:.4g}", f"{each.warm_ms:.3f}", f"{each.peak_mib:.4g}")
        for title, each in measured.items()
    ]
    title = "A forwarded call: own time of both functions; Lambda is another process on 127.0.0.1"
    return table(title, ("", "first response, ms", "warm, ms", "peak resident, MiB"), rows)


def forwarding_targets(measured: Mapping[str, Figures]) -> list[Target]:
    return [Target(f"{FRONT_DOOR}, ms", measured[FRONT_DOOR].warm_ms, 3)]


@contextmanager
def _front_door() -> Iterator[Contender]:
    """It, before an endpoint that answers until the block ends."""
    [body] = measure.run(OURS, 1)["bodies"]
    answer = {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}
    outcome = Outcome(json.dumps(answer).encode())
    api = LambdaApi(_functions, lambda *invocation: outcome)
    with served(api.respond) as url, tempfile.TemporaryDirectory() as folder:
        catalog = Path(folder, "catalog.json")
        catalog.write_text(json.dumps(contents({OWNER: ours.server})), encoding="utf-8")
        yield Contender("front_door", FRONT_DOOR, OURS.event, _variables(catalog, url))


def _functions() -> dict[str, Function]:
    return {FUNCTION: Function(FUNCTION, "ours.handler", Path(ours.__file__).parent, (), {}, 29, 1024)}


def _variables(catalog: Path, endpoint_url: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": measure.ENVIRONMENT["AWS_REGION"],
        "AWS_ENDPOINT_URL_LAMBDA": endpoint_url,
        "FRONT_DOOR_CATALOG": str(catalog),
        "MCP_OWNERS": json.dumps({OWNER: FUNCTION}),
    }
