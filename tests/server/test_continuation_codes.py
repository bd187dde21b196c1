"""A waiting call of an anonymous caller is continued by everyone who has its code and knows its arguments."""

import re
from typing import Any

import pytest

from mcp_roundtrip import Context, Server, ToolError
from mcp_roundtrip.server.options import META_PARKED_CALL
from mcp_roundtrip.tasks.parked_calls import TTL_MS
from support.client_requests import code_in, next_round, text
from support.deployment import Deployment
from support.task_tools import ran, run_step

server = Server("shop")


@server.tool
def order(ctx: Context, item: str, note: str = "") -> dict[str, Any]:
    ctx.step("reserve", run_step, item)
    count = ctx.elicit("count", f"How many {item}?", int)
    if not ctx.confirm("sure", "Sure?"):
        raise ToolError("Not ordered.")
    ctx.step("charge", run_step, f"{count} {item}")
    return {"ordered": count}


@server.tool
def refund(ctx: Context, item: str) -> str:
    return str(ctx.elicit("count", f"How many {item}?", int))


@server.tool
def redeem(continuation_code: str) -> str:
    return continuation_code


@pytest.fixture
def client(version):
    """An anonymous caller without a session, or with another one in each call."""
    return Deployment(server, user=None, version=version, capabilities={})


TEA = {"item": "tea"}
SHOWS_ALL = {"elicitation": {"form": {}, "url": {}}}


def again(client, asked, tool="order", **arguments):
    """Make the call that a text asks for, in a new session."""
    return call_with(client, code_in(asked), tool, **arguments)


def call_with(client, code, tool="order", **arguments):
    return client.by().connected().call(tool, **(arguments or TEA), continuation_code=code)


def is_refused(client, result):
    """Return whether the result says that the code continues no call, and nothing about another one."""
    assert result["isError"] is True
    assert META_PARKED_CALL not in result.get("_meta", {})
    assert not re.search("token=|How many|Sure", text(result))
    return "continuation_code" in text(result)


GUESSES = [
    *("x", "A" * 32, "A" * 31, "A" * 10_000, "../C", "#", "\u0000", "é" * 32),
    *(7, True, ["x"], {"$ne": None}),
]


def test_a_code_counts_for_its_tool_and_its_arguments_only_and_all_refusals_are_equal(client):
    assert client.token(client.text("order", item="tea", continuation_code="")), "none is none"
    asked = client.text("order", item="tea", continuation_code=None)
    other = client.text("refund", item="tea")
    ran.clear()
    refusals = [call_with(client, code) for code in (code_in(other), *GUESSES)]
    refusals.append(again(client, asked, item="milk"))
    refusals.append(again(client, asked, item="tea", note="now"))
    assert all(is_refused(client, each) for each in refusals)
    assert len({text(each) for each in refusals}) == 1
    assert client.outcome == "call_ended"
    assert is_refused(client, again(client, asked, "refund"))
    assert ran == []
    assert client.text("redeem", continuation_code="A7") == "A7", "a tool that asks nothing may have the name"
    assert client.token(text(again(client, asked))) == client.token(asked), "it still counts for its own call"
    client.clock.advance(TTL_MS / 1000 + 1)
    assert is_refused(client, again(client, asked))


def test_a_client_that_shows_all_questions_continues_the_call_of_one_that_does_not():
    other = Deployment(server, user=None, capabilities={})
    asked, client = other.text("order", item="tea"), other.by(capabilities=SHOWS_ALL)
    assert is_refused(client, call_with(client, "A" * 32))
    result = again(client, asked)
    for answers in ({"count": 3}, {"sure": True}):
        result = client.result("tools/call", name="order", arguments=TEA, **next_round(result, **answers))
    assert result["structuredContent"] == {"ordered": 3}
    assert ran == ["tea", "3 tea"]


@pytest.mark.parametrize("signed_in_first", [False, True])
def test_a_code_does_not_cross_the_border_of_signing_in(client, signed_in_first):
    signed_in = client.by(user="alice").connected()
    if signed_in_first:
        mine = client.call("order", item="tea")
        hers = signed_in.call("order", item="tea")
        assert "continuation_code" not in text(hers)
        assert "arguments" not in hers["_meta"][META_PARKED_CALL]
        task_id = next(each.task_id for each in client.tasks if each.task_id != code_in(text(mine)))
        assert is_refused(client, call_with(client, task_id))
    else:
        asked = client.text("order", item="tea")
        hers = signed_in.call("order", item="tea", continuation_code=code_in(asked))
        assert signed_in.token(text(hers)) != client.token(asked), "her call is a new one"
