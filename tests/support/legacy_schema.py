"""The models of 2025-11-25 for what a server sends to clients that open with `initialize`."""

from collections.abc import Mapping
from typing import Any

from mcp_types import _v2025_11_25 as models
from mcp_types import methods
from pydantic import BaseModel

from mcp_roundtrip.protocol.constants import LEGACY_VERSION

TASKS: Mapping[str, type[BaseModel]] = {
    "tasks/get": models.GetTaskResult,
    "tasks/cancel": models.CancelTaskResult,
    "tasks/result": models.CallToolResult,
}

LATER = {"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}
"""Members of results that legacy versions do not have."""


def assert_valid(method: str, response: Mapping[str, Any], *, in_dialect: bool = False) -> None:
    """Check a response of 2025-11-25. The dialect of SEP-2322 has some later members and results."""
    if "error" in response:
        is_url = response["error"]["code"] == -32042
        kind = models.URLElicitationRequiredError if is_url else models.JSONRPCErrorResponse
        kind.model_validate(response)
        return
    result = models.JSONRPCResultResponse.model_validate(response).model_dump()["result"]
    if in_dialect and result.get("resultType") == "input_required":
        return
    assert not (LATER - {"resultType"} if in_dialect else LATER) & result.keys()
    if "task" in result:
        models.CreateTaskResult.model_validate(result)
    elif method in TASKS:
        TASKS[method].model_validate(result)
    elif (method, LEGACY_VERSION) in methods.SERVER_RESULTS:
        methods.validate_server_result(method, LEGACY_VERSION, result)
