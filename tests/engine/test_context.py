"""What a tool can read from its context."""

from __future__ import annotations

from typing import Any

from mcp_roundtrip import Context, Principal
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.replay import Done
from support.passes import Passes


def test_a_tool_can_read_principal_client_and_lambda_context() -> None:
    lambda_context = object()
    info = CallInfo(Principal("jwt", "alice"), {"name": "client"}, lambda_context)

    def body(ctx: Context) -> list[Any]:
        return [ctx.principal, ctx.client, ctx.lambda_context, ctx.remaining_ms, ctx.supports("roots")]

    outcome = Passes(body, {"roots": {}}, remaining_ms=1234, info=info)()
    assert outcome == Done([Principal("jwt", "alice"), {"name": "client"}, lambda_context, 1234, True])
