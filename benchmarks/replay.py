"""What a replay costs, by the length of the journal: `replay.py STEPS... PIPE`.

Two kinds of steps, because their results come back in two ways: plain numbers as they are, models through
pydantic. And two views of each: the engine alone, and the whole round around it (the event, the ladder,
the state's encryption and signature, the answer), which ends with the tool's result.
"""

import json
import marshal
import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from pydantic import BaseModel

import payloads
from mcp_roundtrip import Context, Server, wiring
from mcp_roundtrip.deadline import Deadline
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.host import HostServices
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcome import Done, NeedsInput
from mcp_roundtrip.engine.replay import replay
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.environment import load_settings
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.keys import LocalKey
from mcp_roundtrip_testing.ports import make_codec
from probe import Context as LambdaContext

ANSWER = {"go": {"action": "accept", "content": {"value": True}}}


class Row(BaseModel):
    """A result of the size that steps are meant to have."""

    id: str
    price: float


def number(item: int) -> int:
    return item


def row(item: int) -> Row:
    return Row(id=f"row-{item}", price=item / 4)


# The longest journal is over what is minted by default.
codec = make_codec(LocalKey.generate(), time.time, Limits(max_minted=Limits().max_presented))
ports = replace(wiring.make_ports(load_settings(os.environ)), state_codec=lambda: codec)
server = Server("bench", ports=lambda: ports)


@server.tool
def numbers(ctx: Context, steps: int) -> int:
    """Steps that return a number, then a question."""
    for item in range(steps):
        ctx.step(f"step-{item}", number, item)
    ctx.elicit("go", "Go on?", bool)
    return steps


@server.tool
def models(ctx: Context, steps: int) -> int:
    """Steps that return a model, then a question."""
    for item in range(steps):
        ctx.step(f"step-{item}", row, item)
    ctx.elicit("go", "Go on?", bool)
    return steps


def engine(tool: Callable[..., int], steps: int) -> Callable[[], None]:
    """A pass over a journal that holds all steps and the answer's question."""
    asked = _pass(tool, steps, Journal("bench"), resumed=False)
    assert isinstance(asked, NeedsInput), asked

    def again() -> None:
        assert _pass(tool, steps, asked.journal, resumed=True) == Done(steps)

    return again


def _pass(tool: Callable[..., int], steps: int, journal: Journal, *, resumed: bool) -> object:
    services = HostServices(
        deadline=Deadline(sys.maxsize, lambda: 0),
        clock=time.time,
        random_bytes=secrets.token_bytes,
        sign_link=lambda *link: "unused",
        pause_ms=lambda duration_ms: None,
        on_step_failed=lambda step, error, runs_again: None,
        pause_ms_async=wiring.pause_ms_async,
        call_identity=lambda: None,
    )
    inputs = ClientInputs(ANSWER if resumed else {}, resumed, {"elicitation": {}})
    run = Run(journal, inputs, services, NotificationBuffer())
    return replay(tool, {"ctx": Context(run, CallInfo()), "steps": steps}, run)


def whole_round(tool: Callable[..., int], steps: int) -> Callable[[], None]:
    """The last of the tool's two requests."""
    name, context = tool.__name__, LambdaContext()
    first = _result(server.lambda_handler(payloads.current(name, {"steps": steps}), context))
    resumed = payloads.current(
        name, {"steps": steps}, inputResponses=ANSWER, requestState=first["requestState"]
    )
    assert _result(server.lambda_handler(resumed, context))["structuredContent"] == steps
    return lambda: server.lambda_handler(resumed, context)


def _result(response: dict[str, Any]) -> dict[str, Any]:
    return json.loads(response["body"])["result"]


def cost_ms(call: Callable[[], None], steps: int) -> float:
    """The median of as many calls as fit in a moment."""
    samples = []
    for _ in range(20 + 20_000 // (steps + 50)):
        started = time.perf_counter()
        call()
        samples.append((time.perf_counter() - started) * 1000)
    return median(samples[5:])


def main(lengths: list[int], pipe: int) -> None:
    figures = {
        tool.__name__: {
            view.__name__: [cost_ms(view(tool, steps), steps) for steps in lengths]
            for view in (engine, whole_round)
        }
        for tool in (numbers, models)
    }
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"replays": figures}, out)


if __name__ == "__main__":
    *given, last = map(int, sys.argv[1:])
    main(given, last)
