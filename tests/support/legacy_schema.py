"""The models of 2025-11-25 for what a server sends to clients that open with `initialize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import _v2025_11_25 as models
from pydantic import BaseModel

RESULTS: Mapping[str, type[BaseModel]] = {
    "initialize": models.InitializeResult,
    "tools/list": models.ListToolsResult,
    "tools/call": models.CallToolResult,
    "prompts/list": models.ListPromptsResult,
    "prompts/get": models.GetPromptResult,
    "resources/list": models.ListResourcesResult,
    "resources/templates/list": models.ListResourceTemplatesResult,
    "resources/read": models.ReadResourceResult,
    "completion/complete": models.CompleteResult,
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
        (models.URLElicitationRequiredError if is_url else models.JSONRPCErrorResponse).model_validate(
            response
        )
        return
    result = models.JSONRPCResultResponse.model_validate(response).model_dump()["result"]
    if in_dialect and result.get("resultType") == "input_required":
        return
    assert in_dialect or not LATER & result.keys()
    if "task" in result:
        models.CreateTaskResult.model_validate(result)
    elif method in RESULTS:
        RESULTS[method].model_validate(result)
