"""What the response to a request means that has no result, in one sentence."""

from __future__ import annotations

import re
from typing import Final

import httpx2

from mcp_roundtrip_tools.client.http import member

RENAMED: Final = ("x-amzn-remapped-www-authenticate", "x-mcp-challenge")
"""The names that API Gateway gives to the header of a challenge."""

_CORRELATION_HEADERS: Final = ("apigw-requestid", "x-amzn-requestid", "x-amz-apigw-id")

_BY_STATUS: Final = {
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
    401: "The endpoint refuses the request (401).",
    403: "The endpoint refuses the request (403): AuthMode iam needs a signed request (IAM=1) of a principal "
    "with execute-api:Invoke; an authorizer or a web ACL may also refuse it.",
}


def challenge_parameter(response: httpx2.Response, name: str) -> str | None:
    """Return a parameter of a challenge (RFC 6750 §3, RFC 9728 §5.1), or None."""
    headers = (response.headers.get(each) for each in ("www-authenticate", *RENAMED))
    found = re.search(rf'{name}="([^"]*)"', next(filter(None, headers), ""))
    return found[1] if found else None


def error_of(response: httpx2.Response) -> tuple[int, str] | None:
    """Return the code and the message of a JSON-RPC error, or None."""
    error = member(response, "error")
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return error["code"], str(error.get("message", ""))
    return None


def correlation_of(response: httpx2.Response) -> str:
    """Return where to search in the log, as the end of a sentence; empty without an id."""
    ids = [response.headers[name] for name in _CORRELATION_HEADERS if name in response.headers]
    return f" Search the log for {ids[0]}." if ids else ""


def explain(response: httpx2.Response) -> str:
    """Return one sentence on a response that is not an MCP message."""
    status, message = response.status_code, member(response, "message")
    if 300 <= status < 400:
        return (
            f"The endpoint redirects to {response.headers.get('location', 'nowhere')}; clients do not follow."
        )
    kind = response.headers.get("content-type", "no content-type")
    text = _BY_STATUS.get(status, f"The URL answers {status} with {kind}: this is not an MCP endpoint.")
    said = f" It says: {message}." if isinstance(message, str) and message else ""
    return text + said + correlation_of(response)
