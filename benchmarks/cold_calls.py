"""Make one cold call, and return its sample: through a front door, or to a tool directly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import measure
import payloads
from cold_processes import OWNER, TIMEOUT_S, ColdLambda, Sample, Stopwatch
from cpu_limits import MB_OF_ONE_VCPU
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult
from mcp_roundtrip_tools.template.model import Function
from measure import BenchmarkError, Implementation
from revisions import Deployment

UNTIL_INVOKE = "front_door until Invoke"
CALLER = {"jwt": {"claims": {"iss": "https://id.example", "sub": "bench"}}}

_SETTINGS = {name: text for name, text in measure.ENVIRONMENT.items() if not name.startswith("AWS_")}
"""The other variables are those of the emulated Lambda."""


def whole_chain(lambda_: ColdLambda, deployed: Deployment, front_door_mb: int, tool_mb: int) -> Sample:
    """Call a tool through a cold front door, up to its question."""
    watch = Stopwatch()

    def start_tool(payload: bytes) -> InvocationResult:
        watch.mark(UNTIL_INVOKE)
        result = lambda_.invoke(_function(deployed, OWNER, tool_mb), payload, watch)
        watch.mark("tool until its question")
        return result

    lambda_.owner = start_tool
    return _through_front_door(lambda_, deployed, front_door_mb, _order(), "requestState", watch)


def forwarded_call(lambda_: ColdLambda, deployed: Deployment) -> Sample:
    """Call a tool, which answers at once, through a cold front door."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": []}})
    response = {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}
    watch = Stopwatch()

    def answer(payload: bytes) -> InvocationResult:
        watch.mark(UNTIL_INVOKE)
        return InvocationResult(json.dumps(response).encode())

    lambda_.owner = answer
    return _through_front_door(lambda_, deployed, MB_OF_ONE_VCPU, _order(), "resultType", watch)


def list_tools(lambda_: ColdLambda, deployed: Deployment) -> Sample:
    """List the tools at a cold front door."""
    event = _event(payloads.list_request("tools/list"))
    return _through_front_door(lambda_, deployed, MB_OF_ONE_VCPU, event, "inputSchema", Stopwatch())


def plain_call(
    lambda_: ColdLambda, implementation: Implementation, code: Path, path: tuple[Path, ...]
) -> Sample:
    """Call a plain tool without a front door. `code` is the folder of `implementations`."""
    handler, watch = f"implementations/{implementation.module}.handler", Stopwatch()
    function = Function("plain", handler, code, path, _SETTINGS, TIMEOUT_S, MB_OF_ONE_VCPU)
    return _invoke(lambda_, function, json.dumps(implementation.event).encode(), measure.EXPECTED_SUM, watch)


def _through_front_door(
    lambda_: ColdLambda, deployed: Deployment, memory_mb: int, event: bytes, expected: str, watch: Stopwatch
) -> Sample:
    return _invoke(lambda_, _function(deployed, "front_door", memory_mb), event, expected, watch)


def _invoke(lambda_: ColdLambda, function: Function, event: bytes, expected: str, watch: Stopwatch) -> Sample:
    """Invoke the function whose response reaches the client."""
    try:
        result = lambda_.invoke(function, event, watch)
        watch.mark(f"{function.name} until its response")
    finally:
        lambda_.stop()
    if expected not in (text := result.payload.decode()):
        raise BenchmarkError(f"the response of {function.name} has no {expected}: {text}")
    return watch.sample()


def _function(deployed: Deployment, name: str, memory_mb: int) -> Function:
    owners = {} if name == OWNER else {"MCP_OWNERS": json.dumps({OWNER: OWNER})}
    variables = {**_SETTINGS, "MCP_AUTH_MODE": "jwt", **owners}
    code = deployed.functions / name
    return Function(name, "app.handler", code, deployed.path, variables, TIMEOUT_S, memory_mb)


def _order() -> bytes:
    return _event(payloads.tool_call("order", {"item": 1}))


def _event(event: dict[str, Any]) -> bytes:
    event["requestContext"]["authorizer"] = CALLER
    return json.dumps(event).encode()
