"""What a response that is no MCP message means, in one sentence."""

from __future__ import annotations

from mcp_roundtrip_tools.client.exchange import Response

_BY_STATUS = {
    404: "There is no route at this URL (404). Use the output McpUrl of the stack, which ends in /mcp; with "
    "DomainName, API Gateway's own host has no routes.",
    405: "This URL does not accept POST (405): it is not the MCP endpoint.",
    413: "The endpoint refuses the size of the request (413).",
    429: "The endpoint throttles (429): ThrottlingRate, ThrottlingBurst, a limit at the edge, or open tasks.",
    500: "API Gateway could not use the function's response (500): the function crashed, or API Gateway may "
    "not invoke it. Read the stack's log group.",
    501: "The function at this URL does not run here (501).",
    502: "The function failed before it could answer (502): an import error, or a layer that was built for "
    "another Python or architecture. Read the stack's log group.",
    503: "The function did not answer (503): it timed out, or Lambda throttled it.",
    504: "The function did not answer in time (504).",
}


def explain(response: Response) -> str:
    """Return one sentence on a response that is not an MCP message."""
    message = response.member("message")
    said = f" It says: {message}." if isinstance(message, str) and message else ""
    if 300 <= response.status < 400:
        return (
            f"The endpoint redirects to {response.headers.get('location', 'nowhere')}; clients do not follow."
        )
    if response.status in (401, 403):
        return _explain_refusal(response.status, said)
    if response.status in _BY_STATUS:
        return _BY_STATUS[response.status] + said
    kind = response.headers.get("content-type", "no content-type")
    return f"The URL answers {response.status} with {kind}: this is not an MCP endpoint." + said


def _explain_refusal(status: int, said: str) -> str:
    if status == 401:
        return "The endpoint refuses the request (401)." + said
    return (
        "The endpoint refuses the request (403): AuthMode iam needs a signed request (IAM=1) of a principal "
        "with execute-api:Invoke; an authorizer or a web ACL may also refuse it." + said
    )
