"""The expected outcome of every sample event."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.invoke.next_event import task_of
from mcp_roundtrip_tools.run.http.messages import Respond
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.aws_endpoint import lead_to_services
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms import respond as respond_kms
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.run.services.ministack import Emulator
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.sam_local.command import Invoke, given_answers, next_rounds
from mcp_roundtrip_tools.template.model import Storage
from support.aws_clients import FUNCTION
from support.dynamodb_clients import TABLE
from support.fake_kms import mac_key, signing_key
from support.project import ROOT

EVENTS = ROOT / "events"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an event.

    `what` is a JSON-RPC error code, a resultType ("complete" for legacy versions), "tool error" or the number
    of failed messages; None without a body.

    `status` is None for a direct invocation, which has no HTTP response.
    """

    status: int | None
    what: int | str | None


ASKS, DONE, TOOL_ERROR, TASK = "input_required", "complete", "tool error", "task"

STABLE: Mapping[str, Outcome] = {
    "alb/weather/call.json": Outcome(200, ASKS),
    "alb/weather/health_check.json": Outcome(405, -32600),
    "alb_multi_value/weather/call.json": Outcome(200, ASKS),
    "approval/call.json": Outcome(200, ASKS),
    "approval/direct_call.json": Outcome(None, ASKS),
    "approval/page.json": Outcome(404, None),
    "front_door/direct_list.json": Outcome(None, DONE),
    "front_door/discover.json": Outcome(200, DONE),
    "front_door/get.json": Outcome(405, -32600),
    "front_door/initialize.json": Outcome(200, DONE),
    "front_door/list.json": Outcome(200, DONE),
    "front_door/notification.json": Outcome(202, None),
    "front_door/prompts.json": Outcome(200, DONE),
    "front_door/question_page.json": Outcome(404, None),
    "front_door/resources.json": Outcome(200, DONE),
    "front_door/task_without_extension.json": Outcome(400, -32021),
    "front_door/templates.json": Outcome(200, DONE),
    "front_door/unknown_method.json": Outcome(404, -32601),
    "front_door/unknown_prompt.json": Outcome(400, -32602),
    "front_door/unknown_resource.json": Outcome(400, -32602),
    "front_door/unknown_task.json": Outcome(400, -32602),
    "front_door/unknown_tool.json": Outcome(400, -32602),
    "function_url/weather/call.json": Outcome(200, ASKS),
    "http_api_1_0/weather/call.json": Outcome(200, ASKS),
    "provision/bad_arguments.json": Outcome(200, TOOL_ERROR),
    "provision/call.json": Outcome(200, ASKS),
    "provision/direct_call.json": Outcome(None, ASKS),
    "provision/read.json": Outcome(200, DONE),
    "provision/without_tasks.json": Outcome(200, ASKS),
    "provision_worker/invoke.json": Outcome(None, None),
    "provision_worker/queue.json": Outcome(None, 0),
    "rest_api/weather/call.json": Outcome(200, ASKS),
    "summarize/call.json": Outcome(200, ASKS),
    "summarize/direct_call.json": Outcome(None, ASKS),
    "summarize/rfc.json": Outcome(200, ASKS),
    "summarize/without_capabilities.json": Outcome(200, DONE),
    "weather/bad_arguments.json": Outcome(200, TOOL_ERROR),
    "weather/call.json": Outcome(200, ASKS),
    "weather/call_at_once.json": Outcome(200, DONE),
    "weather/compare.json": Outcome(200, ASKS),
    "weather/complete.json": Outcome(200, DONE),
    "weather/direct_call.json": Outcome(None, ASKS),
    "weather/direct_forged_state.json": Outcome(None, -32602),
    "weather/direct_notification.json": Outcome(None, None),
    "weather/direct_read.json": Outcome(None, DONE),
    "weather/discover.json": Outcome(200, DONE),
    "weather/forged_state.json": Outcome(400, -32602),
    "weather/header_mismatch.json": Outcome(400, -32020),
    "weather/missing_meta.json": Outcome(400, -32602),
    "weather/not_json.json": Outcome(400, -32700),
    "weather/read_template.json": Outcome(200, DONE),
    "weather/read_unknown_place.json": Outcome(400, -32602),
    "weather/templates.json": Outcome(200, DONE),
    "weather/without_elicitation.json": Outcome(200, DONE),
    "work_items/call.json": Outcome(200, ASKS),
    "work_items/complete.json": Outcome(200, DONE),
    "work_items/direct_call.json": Outcome(None, ASKS),
    "work_items/missing_capability.json": Outcome(400, -32021),
    "work_items/prompt.json": Outcome(200, DONE),
    "work_items/prompt_asks.json": Outcome(200, ASKS),
    "work_items/prompt_bad_arguments.json": Outcome(400, -32602),
    "work_items/prompts.json": Outcome(200, DONE),
    "work_items/retry_without_state.json": Outcome(200, ASKS),
    "work_items/unknown_work_item.json": Outcome(200, TOOL_ERROR),
}

ROUNDS: Mapping[str, tuple[Outcome, ...]] = {
    "provision/call.json": (Outcome(200, ASKS), Outcome(200, ASKS), Outcome(200, TASK)),
    "summarize/call.json": (Outcome(200, ASKS), Outcome(200, DONE)),
    "weather/call.json": (Outcome(200, ASKS), Outcome(200, DONE)),
    "weather/direct_call.json": (Outcome(None, ASKS), Outcome(None, DONE)),
    # Before the call, which resolves an item.
    "work_items/prompt_asks.json": (Outcome(200, ASKS), Outcome(200, DONE)),
    "work_items/call.json": (Outcome(200, ASKS), Outcome(200, ASKS), Outcome(200, DONE)),
}
"""The outcome of each round of a call with the answers of `sam_local`."""


def stable_events() -> dict[str, Any]:
    """Return the events by file."""
    files = [path for path in EVENTS.rglob("*.json") if "live" not in path.relative_to(EVENTS).parts]
    found = {path.relative_to(EVENTS).as_posix(): json.loads(path.read_text("utf-8")) for path in files}
    return {name: event for name, event in found.items() if name in STABLE}


def function_of(file: str) -> str:
    """Return the service name of the function of an event: its folder, with `_worker` for workers."""
    return Path(file).parent.name


ONE_OF_EACH: Mapping[str, str] = {
    function_of(file): file for file in sorted(STABLE, key=lambda file: STABLE[file].what == ASKS)
}
"""An event of each function: one that asks, if there is one, because that needs keys."""


def handler_of(function: str) -> tuple[str, str]:
    """Return the folder of a function and the name of its handler in `app`."""
    folder = function.removesuffix("_worker")
    return folder, "handler" if folder == function else "worker"


def outcome(response: Any) -> Outcome:
    """Return the outcome of a Lambda response. Direct responses are bare JSON-RPC or null."""
    if not isinstance(response, dict) or "jsonrpc" in response:
        return Outcome(None, _what(response))
    if "batchItemFailures" in response:
        return Outcome(None, len(response["batchItemFailures"]))
    body, kind = response["body"], response.get("headers", {}).get("content-type", "")
    return Outcome(response["statusCode"], _what(json.loads(body) if body and "html" not in kind else None))


def _what(answer: Any) -> int | str | None:
    if answer is None:
        return None
    if "error" in answer:
        code: int = answer["error"]["code"]
        return code
    result = answer["result"]
    return TOOL_ERROR if result.get("isError") else str(result.get("resultType", DONE))


SETTINGS = {
    "APPROVALS_URL": "http://127.0.0.1:3000/approvals",
    "APPROVAL_SENDER": "approvals@example.com",
    "MCP_AUTH_MODE": "none",
    "MCP_ISSUER": "urn:mcp-roundtrip:test",
    "MCP_AUDIENCE": "http://127.0.0.1:3000/mcp",
    "MCP_TASK_WORKER": "arn:aws:lambda:us-east-1:000000000000:function:ProvisionWorkerFunction",
}
"""The variables of functions that name neither a key nor a table."""


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    """Yield the variables of a function: its keys, empty tables, and a Lambda without functions."""
    kms = FakeKms()
    storage = Emulator(print)
    storage.declare(Storage({"tasks": TABLE, "approvals": TABLE}))
    emulated: dict[str, Respond] = {"kms": partial(respond_kms, kms), "dynamodb": storage.respond}
    aws = lead_to_services(emulated, LambdaApi(dict, lambda *call: NotImplemented).respond)
    with (
        closing(storage),
        closing(HttpServer(aws).start()) as server,
        serve_stand_ins(ROOT / "template.yaml") as services,
    ):
        yield {
            **services,
            **SETTINGS,
            "APPROVAL_TABLE": "approvals",
            "MCP_STATE_KEY_ARN": signing_key(kms),
            "MCP_STATE_ENCRYPTION_KEY_ARN": mac_key(kms),
            "MCP_TASK_TABLE": "tasks",
            "AWS_ENDPOINT_URL": server.url,
            **FUNCTION,
        }


def rounds_of(invoke: Invoke, file: str) -> list[tuple[Any, Any]]:
    """Play a call; return the event and the response of each round."""
    played: list[tuple[Any, Any]] = []

    def record(function: str, event: Any) -> Any:
        response = invoke(function, event)
        if not any(task_of(earlier) for _, earlier in played):  # a call that becomes a task is played again
            played.append((event, response))
        return response

    next_rounds(record, function_of(file), stable_events()[file], given_answers(EVENTS))
    return played
