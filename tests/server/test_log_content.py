"""Logs of a call: one line per request, without arguments, answers or results."""

import json
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from pydantic import BeforeValidator

from mcp_roundtrip import Context, Server, ToolError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, META_CLIENT_INFO
from mcp_roundtrip.protocol.session_id import SessionId
from mcp_roundtrip.server import stored_call_passes
from mcp_roundtrip_testing import Player
from mcp_roundtrip_testing.player import EVERYTHING
from support.client_requests import accepted
from support.deployment import Deployment
from support.messages import META

server = Server("logged")

SECRETS = {kind: f"{kind}-{uuid4().hex}" for kind in ("argument", "answer", "result", "sampled", "bearer")}


@server.tool
def order(ctx: Context, card: str, fails: str = "") -> str:
    answer = ctx.elicit("address", "Where to?", str)
    sampled = ctx.sample("text", "Write a card", max_tokens=10)
    result = ctx.step("charge", lambda: SECRETS["result"])
    ctx.log("info", {"card": card})
    if fails == "tool error":
        raise ToolError(f"{card} {answer}")
    if fails:
        raise RuntimeError(f"{card}, {answer!r}, {sampled.text}, {json.dumps(result)}")
    return f"{card} {answer} {sampled.text} {result}"


@server.tool
def raises_with_values(ctx: Context) -> None:
    assert ctx.principal is not None
    assert ctx.client is not None
    raise PermissionError(f"{ctx.principal.subject} may not, with {ctx.client['name']}")


@server.tool(task="required")
def raises_later(ctx: Context) -> None:
    ctx.run_as_task()
    raises_with_values(ctx)


def strict(value: Any) -> Any:
    raise LookupError(value)


@server.tool
def validated(card: Annotated[str, BeforeValidator(strict)]) -> str:
    return card


@server.prompt
def validated_prompt(card: Annotated[str, BeforeValidator(strict)]) -> str:
    return card


@server.resource("cards://{card}/limit")
def validated_resource(card: Annotated[str, BeforeValidator(strict)]) -> str:
    return card


server.completion("validated_prompt", "card")(strict)


@server.tool(task="required")
def lasting(ctx: Context, card: str) -> str:
    ctx.run_as_task()
    return card


def playing():
    observer = LogObserver()
    observer.begin("request-1")
    meta = {"com.example/token": SECRETS["bearer"]}
    return Player(server, EVERYTHING, observer=observer, log_level="debug", meta=meta)


ANSWERS = {
    "address": {"value": SECRETS["answer"]},
    "text": {"role": "assistant", "content": {"type": "text", "text": SECRETS["sampled"]}, "model": "m"},
}


@pytest.mark.parametrize("fails", ["", "tool error", "bug"])
def test_no_value_of_a_call_is_logged(capsys, fails):
    arguments = {"card": SECRETS["argument"], "fails": fails}
    player = playing()
    played = player.call("order", arguments, **ANSWERS)
    assert played.result.get("isError", False) is bool(fails)
    state = player.call("order", arguments).state
    for answers in ({"address": {"action": SECRETS["answer"]}}, {"address": accepted([SECRETS["answer"]])}):
        player.send("order", arguments, answers, state)
    player.send("order", arguments, None, f"{state}{SECRETS['bearer']}")
    player.send("order", {"card": [SECRETS["argument"]], SECRETS["argument"]: 1}, None, None)
    said = capsys.readouterr().out
    assert "request_completed" in said
    assert "state_refused" in said
    assert [kind for kind, secret in SECRETS.items() if secret in said] == []
    assert "eyJ" not in said, "no state"
    assert ("RuntimeError" in said) is (fails == "bug")


INFO = {"name": SECRETS["argument"], "version": "1"}
OF_REQUEST = {"meta": {**META, META_CLIENT_INFO: INFO}}
OF_SESSION = {
    "version": LEGACY_VERSION,
    "session_id": SessionId.create(LEGACY_VERSION, INFO, {}, bytes(16)).encode(),
}


@pytest.mark.parametrize(
    ("tool", "facets", "params"),
    [
        ("raises_with_values", {}, OF_REQUEST),
        ("raises_with_values", OF_SESSION, {}),
        ("raises_later", {}, {}),
    ],
    ids=["of a request", "of a session", "in a worker"],
)
def test_caller_and_client_in_an_exception_are_redacted_in_the_log(capsys, tool, facets, params):
    client = Deployment(server, user=SECRETS["bearer"], observer=LogObserver(), **facets)
    client.post_call(tool, **params)
    client.run_workers()
    said = capsys.readouterr().out
    assert "PermissionError: [redacted] " in said
    assert [kind for kind, secret in SECRETS.items() if secret in said] == []


SECRET = {"card": SECRETS["argument"]}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "validated", "arguments": SECRET}),
        ("prompts/get", {"name": "validated_prompt", "arguments": SECRET}),
        ("resources/read", {"uri": f"cards://{quote(SECRETS['argument'], safe='')}/limit"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "validated_prompt"},
                "argument": {"name": "card", "value": SECRETS["argument"]},
            },
        ),
    ],
)
def test_exceptions_before_a_call_starts_are_redacted(capsys, method, params):
    assert "Quote test to " in str(playing().request(method, **params))
    said = capsys.readouterr().out
    assert "LookupError" in said
    assert SECRETS["argument"] not in said


def test_an_exception_of_a_worker_outside_of_its_tool_is_redacted(capsys, monkeypatch):
    deployment = Deployment(server, observer=LogObserver())
    deployment.start("lasting", **SECRET)
    monkeypatch.setattr(
        stored_call_passes, "run_pass", lambda call, run: strict(call.params.arguments["card"])
    )
    with pytest.raises(LookupError):
        deployment.run_workers()
    said = capsys.readouterr().out
    assert "worker_failed" in said
    assert SECRETS["argument"] not in said
