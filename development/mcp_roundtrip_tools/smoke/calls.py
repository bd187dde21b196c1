"""Checks of MCP: discovery, the tools, the function behind the front door, and a question's round trip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.protocol.constants import DISCOVER, PROTOCOL_VERSION, TOOLS_CALL, TOOLS_LIST
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.client.challenges import challenge_of
from mcp_roundtrip_tools.client.exchange import Response
from mcp_roundtrip_tools.client.mcp_requests import (
    Endpoint,
    correlation_of,
    error_of,
    parameter_headers,
    result_of,
)
from mcp_roundtrip_tools.client.refusals import explain
from mcp_roundtrip_tools.smoke.answers import content_for
from mcp_roundtrip_tools.smoke.findings import Findings, Stopped

MAX_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool to try. The tool should ask a question and have no side effects."""

    tool: str
    arguments: Mapping[str, Any]


def check_discovery(endpoint: Endpoint, findings: Findings) -> None:
    """Check that the endpoint is an MCP server of the current version. Raises Stopped if not."""
    response = endpoint.post(DISCOVER)
    result = result_of(response)
    if result is None:
        raise _stop(
            findings, "discovery", response, "A setting of the function is wrong (log event misconfigured)"
        )
    versions = result.get("supportedVersions", [])
    if PROTOCOL_VERSION not in versions:
        raise findings.stop(
            "discovery",
            f"The server does not support MCP {PROTOCOL_VERSION}, but {', '.join(map(str, versions))}.",
        )
    findings.ok("discovery", f"The server speaks MCP {PROTOCOL_VERSION}.")


def check_tools(endpoint: Endpoint, findings: Findings) -> Mapping[str, Mapping[str, Any]]:
    """Check that the endpoint lists tools; return them by name. Raises Stopped if there are none."""
    listed: dict[str, Mapping[str, Any]] = {}
    cursor: str | None = None
    while True:
        response = endpoint.post(TOOLS_LIST, {} if cursor is None else {"cursor": cursor})
        result = result_of(response)
        if result is None:
            raise _stop(
                findings, "tools", response, "The function cannot list its tools (log event misconfigured)"
            )
        listed |= {each["name"]: each for each in result.get("tools", [])}
        cursor = result.get("nextCursor")
        if cursor is None:
            break
    if not listed:
        raise findings.stop(
            "tools",
            "The endpoint lists no tools: the front door's catalog.json is empty (run make catalog and "
            "deploy), or the caller's scopes hide all tools.",
        )
    findings.ok("tools", f"The endpoint lists {len(listed)} tools: {', '.join(sorted(listed)[:10])}.")
    return listed


def check_owner(endpoint: Endpoint, tool: Mapping[str, Any], findings: Findings) -> None:
    """Check that the front door reaches the function of a tool, without running the tool.

    The function refuses the invalid requestState before it calls the tool. Raises Stopped if it does not.
    """
    response = endpoint.post(TOOLS_CALL, {"name": tool["name"], "arguments": {}, "requestState": "smoke"})
    error = error_of(response)
    if error is None and result_of(response) is None:
        raise findings.stop("function", explain(response) + correlation_of(response))
    if error is not None and error[0] == INTERNAL_ERROR:
        raise findings.stop(
            "function",
            f"The front door cannot reach the function of {tool['name']}: MCP_OWNERS does not name it, its "
            "role may not invoke it, or the function does not start (log misconfigured, forwarding_failed)."
            + correlation_of(response),
        )
    if response.status == 403:
        raise _lacks_scopes(findings, "function", response)
    findings.ok("function", f"The function of {tool['name']} answers.")


def check_call(endpoint: Endpoint, call: Call, tool: Mapping[str, Any], findings: Findings) -> None:
    """Call the tool and answer its questions. Raises Stopped if the call does not complete."""
    params: dict[str, Any] = {"name": call.tool, "arguments": dict(call.arguments)}
    headers = parameter_headers(tool, call.arguments)
    for answered in range(MAX_ROUNDS):
        response = endpoint.post(TOOLS_CALL, params, headers=headers)
        result = result_of(response)
        if result is None:
            raise _stop(findings, "call", response, _hint(answered))
        if result.get("resultType") != "input_required":
            return _completed(call, result, answered, findings)
        requests = result.get("inputRequests") or {}
        params = {
            **params,
            "requestState": result.get("requestState"),
            "inputResponses": {key: _answer(each) for key, each in requests.items()},
        }
    raise findings.stop("call", f"{call.tool} still asks after {MAX_ROUNDS} rounds.")


def _completed(call: Call, result: Mapping[str, Any], rounds: int, findings: Findings) -> None:
    if result.get("isError"):
        texts = [each.get("text", "") for each in result.get("content", []) if isinstance(each, dict)]
        raise findings.stop("call", f"{call.tool} returned a tool error: {' '.join(texts)[:300]}")
    if rounds:
        findings.ok("call", f"{call.tool} asked, was answered and completed in {rounds + 1} rounds.")
    else:
        findings.note("call", f"{call.tool} completed without a question, so states and KMS were not tried.")


def _answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    if request.get("method") == "elicitation/create" and "requestedSchema" in request.get("params", {}):
        return {"action": "accept", "content": content_for(request["params"]["requestedSchema"])}
    return {"action": "decline"}


def _hint(answered: int) -> str:
    if answered == 0:
        return (
            "The tool or its first question failed inside the function: KMS does not sign (log event "
            "state_unavailable), the task table does not answer (task_table_unavailable), or the tool "
            "raised (tool_raised)"
        )
    return (
        "The answer was not accepted: the function that continues cannot verify the state (log event "
        "state_refused), for example because its keys or its audience differ from those of the one that "
        "asked"
    )


def _stop(findings: Findings, check: str, response: Response, hint: str) -> Stopped:
    error = error_of(response)
    if response.status == 403 and challenge_of(response):
        return _lacks_scopes(findings, check, response)
    if error is None:
        return findings.stop(check, explain(response) + correlation_of(response))
    code, message = error
    because = (
        f"{hint}: {code}, {message}."
        if code == INTERNAL_ERROR
        else f"The server refuses the request: {code}, {message}."
    )
    return findings.stop(check, because.replace("..", ".") + correlation_of(response))


def _lacks_scopes(findings: Findings, check: str, response: Response) -> Stopped:
    found = challenge_of(response).partition('scope="')[2].partition('"')[0]
    return findings.stop(
        check, f"The token lacks scopes; the call needs all of: {found or 'see the challenge'}."
    )
