"""Garbage collection in a Lambda function, counted in fresh processes."""

from __future__ import annotations

import pytest

from mcp_roundtrip.deployment.garbage_collection import THRESHOLD
from support.interpreters import run_program

FIRST_CALL = """
import gc, sys
exec(sys.argv[1])
import mcp_roundtrip
before = sum(generation["collections"] for generation in gc.get_stats())
from mcp_roundtrip import Context, Server
server = Server("x")

@server.tool
def ask(ctx: Context, a: int = 0) -> str:
    return ctx.elicit("name", "Who?", str) if a else "done"

meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
meta = {"io.modelcontextprotocol/" + name: value for name, value in meta.items()}
params = {"name": "ask", "arguments": {}, "_meta": meta}
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
assert "result" in server.lambda_handler(body, None)
after = sum(generation["collections"] for generation in gc.get_stats())
print(after - before, gc.get_threshold()[0], file=sys.stderr)
"""


def first_call(before: str = "", **variables: str) -> tuple[int, int]:
    """Return the collections up to the first response after the statement `before`, and the threshold."""
    done = run_program(FIRST_CALL, before, MCP_AUTH_MODE="none", **variables)
    collections, threshold = map(int, done.stderr.split())
    return collections, threshold


def test_a_cold_start_on_lambda_collects_no_garbage() -> None:
    assert first_call(AWS_LAMBDA_RUNTIME_API="127.0.0.1:9001") == (0, THRESHOLD)


def test_elsewhere_nothing_is_changed() -> None:
    collections, threshold = first_call("print(gc.get_threshold())")
    assert collections > 0
    assert threshold < THRESHOLD


@pytest.mark.parametrize("own", [THRESHOLD + 1, 0])
def test_a_higher_threshold_of_the_function_stays(own: int) -> None:
    statement = f"gc.set_threshold({own})"
    assert first_call(statement, AWS_LAMBDA_RUNTIME_API="127.0.0.1:9001") == (0, own)
