"""The same call with the official Python client, which negotiates and follows questions by itself."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from mcp_roundtrip_tools.client.mcp_requests import Endpoint
from mcp_roundtrip_tools.smoke.answers import content_for
from mcp_roundtrip_tools.smoke.calls import Call
from mcp_roundtrip_tools.smoke.findings import Findings


def check_with_client(endpoint: Endpoint, call: Call | None, findings: Findings) -> None:
    """List the tools, and make the call, with the official client."""
    if find_spec("mcp") is None:
        findings.note("client", "The official client is not installed (pip install mcp): it was not tried.")
        return
    import anyio  # a dependency of mcp

    try:
        name = anyio.run(_use_client, endpoint, call)
    except BaseExceptionGroup as group:
        raise findings.stop("client", f"The official client fails: {_first(group)}.") from group
    except Exception as error:
        raise findings.stop("client", f"The official client fails: {error}.") from error
    findings.ok("client", name)


async def _use_client(endpoint: Endpoint, call: Call | None) -> str:
    import httpx2
    import mcp_types as types
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=content_for(params.requested_schema))

    class Signature(httpx2.Auth):
        requires_request_body = True

        def auth_flow(self, request: httpx2.Request) -> Any:
            if endpoint.token is not None:
                request.headers["authorization"] = f"Bearer {endpoint.token}"
            if endpoint.sign is not None:
                signed = {
                    name: request.headers[name]
                    for name in request.headers
                    if name.startswith(("content-type", "mcp-"))
                }
                request.headers.update(
                    endpoint.sign(request.method, str(request.url), signed, request.content)
                )
            yield request

    verify: Any = endpoint.tls if endpoint.tls is not None else True
    async with (
        httpx2.AsyncClient(auth=Signature(), verify=verify, timeout=35) as http,
        Client(streamable_http_client(endpoint.url, http_client=http), elicitation_callback=elicit) as client,
    ):
        tools = (await client.list_tools()).tools
        if call is None:
            return f"The official client lists {len(tools)} tools."
        result = await client.call_tool(call.tool, dict(call.arguments))
        if result.is_error:
            raise RuntimeError(f"{call.tool} returned a tool error")
        return f"The official client completes {call.tool}."


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
