"""Build API Gateway events (HTTP API, payload format 2.0) in the protocol version of each implementation."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

HOST = "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"
PROTOCOL_VERSION = "2026-07-28"
PAGE_PATH = "/mcp/questions"

META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}

TASKS_META = {
    **META,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}


def tool_call(name: str, arguments: Mapping[str, Any], **params: Any) -> dict[str, Any]:
    """Build a tool call of revision 2026-07-28 with all required headers."""
    return _named_request("tools/call", name, {"name": name, "arguments": arguments, "_meta": META, **params})


def task_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Build a tool call that may become a task."""
    return tool_call(name, arguments, _meta=TASKS_META)


def task_poll(task_id: str) -> dict[str, Any]:
    """Build a `tasks/get` request."""
    return _named_request("tasks/get", task_id, {"taskId": task_id, "_meta": TASKS_META})


def list_request(method: str) -> dict[str, Any]:
    headers = {"mcp-protocol-version": PROTOCOL_VERSION, "mcp-method": method}
    return _event(method, {"_meta": META}, headers)


def _named_request(method: str, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    headers = {"mcp-protocol-version": PROTOCOL_VERSION, "mcp-method": method, "mcp-name": name}
    return _event(method, params, headers)


def legacy_tool_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Build a tool call of revision 2024-11-05, which has neither MCP headers nor `_meta`."""
    return _event("tools/call", {"name": name, "arguments": arguments}, {})


def page_request(method: str, query: str = "", body: str = "") -> dict[str, Any]:
    """Build a request of a browser for the question page."""
    event = _event("", {}, {"content-type": "application/x-www-form-urlencoded"})
    event["requestContext"]["http"] |= {"method": method, "path": PAGE_PATH}
    parameters = dict(parse_qsl(query))
    queried = {"rawQueryString": query, "queryStringParameters": parameters}
    return {**event, **queried, "rawPath": PAGE_PATH, "body": body}


def _event(method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return {
        "version": "2.0",
        "routeKey": "POST /mcp",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "host": HOST,
            "user-agent": "bench/1",
            "x-forwarded-for": "192.0.2.1",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
            **headers,
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": HOST.partition(".")[0],
            "domainName": HOST,
            "domainPrefix": HOST.partition(".")[0],
            "http": {
                "method": "POST",
                "path": "/mcp",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "bench/1",
            },
            "requestId": "bench",
            "routeKey": "POST /mcp",
            "stage": "$default",
            "time": "28/Jul/2026:00:00:00 +0000",
            "timeEpoch": 1785196800000,
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
