"""Time the replay of journals of different lengths: `replay.py STEPS... PIPE`.

The steps return numbers, which are read as they are, or pydantic models, which are validated. Each is
measured in the engine only, and in a complete round: from the event, through verification and decryption of
the state, to the response with the tool's result.

The times are CPU time, because other load interrupts a long replay more often than a short one. The lengths
take turns, so that a change of the processor's speed affects all of them.
"""

import json
import marshal
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Context, Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.deadline import Deadline
from mcp_roundtrip.engine.journal import History, Journal
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcomes import Done, NeedsInput, run_function
from mcp_roundtrip.engine.pass_state import Run, RunServices
from mcp_roundtrip.engine.question_channels import Channels, ClientInputs
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jws import LocalKey
from mcp_roundtrip_testing.ports import make_codec

TURNS = 60

ANSWER = {"go": {"action": "accept", "content": {"value": True}}}


class Row(BaseModel):
    """A step result of typical size."""

    id: str
    price: float


def number(item: int) -> int:
    return item


def row(item: int) -> Row:
    return Row(id=f"row-{item}", price=item / 4)


# The longest journal exceeds the default size limit of new states.
codec = make_codec(LocalKey.generate(), time.time, Limits(max_minted=Limits().max_presented))
ports = replace(wiring.make_ports(load_settings(os.environ)), state_codec=lambda: codec)
server = Server("bench", ports=lambda: ports)


@server.tool
def numbers(ctx: Context, steps: int) -> int:
    """Run steps that return a number, then ask a question."""
    for item in range(steps):
        ctx.step(f"step-{item}", number, item)
    ctx.elicit("go", "Go on?", bool)
    return steps


@server.tool
def progress(ctx: Context, steps: int) -> int:
    """Run steps that return a number, report progress after each, then ask a question."""
    for item in range(steps):
        ctx.step(f"step-{item}", number, item)
        ctx.progress(item + 1, steps)
    ctx.elicit("go", "Go on?", bool)
    return steps


@server.tool
def models(ctx: Context, steps: int) -> int:
    """Run steps that return a model, then ask a question."""
    for item in range(steps):
        ctx.step(f"step-{item}", row, item)
    ctx.elicit("go", "Go on?", bool)
    return steps


def engine_pass(tool: Callable[..., int], steps: int) -> Callable[[], None]:
    """Return a function that replays a journal with all steps and the question."""
    first = _pass(tool, steps, Journal("bench"), resumed=False)
    assert isinstance(first, NeedsInput), first

    def resume() -> None:
        assert _pass(tool, steps, first.journal, resumed=True) == Done(steps)

    return resume


def _pass(tool: Callable[..., int], steps: int, journal: Journal, *, resumed: bool) -> object:
    services = RunServices(
        deadline=Deadline(sys.maxsize, lambda: 0),
        clock=time.time,
        random_bytes=secrets.token_bytes,
        sign_link=lambda *link: "unused",
        pause_ms=lambda duration_ms: None,
        on_step_failed=lambda step, error, runs_again: None,
        pause_ms_async=None,
        call_identity=lambda: None,
    )
    inputs = ClientInputs(ANSWER if resumed else {}, resumed, lambda: Channels({"elicitation": {}}))
    run = Run(History(journal), inputs, services, NotificationBuffer())
    return run_function(tool, {"ctx": Context(run, CallInfo()), "steps": steps}, run)


def complete_round(tool: Callable[..., int], steps: int) -> Callable[[], None]:
    """Return a function that sends the second of the tool's two requests."""
    name, context = tool.__name__, LambdaContext()
    first = _result(server.lambda_handler(payloads.tool_call(name, {"steps": steps}), context))
    resumed = payloads.tool_call(
        name, {"steps": steps}, inputResponses=ANSWER, requestState=first["requestState"]
    )
    assert _result(server.lambda_handler(resumed, context))["structuredContent"] == steps
    return lambda: server.lambda_handler(resumed, context)


def _result(response: dict[str, Any]) -> dict[str, Any]:
    return json.loads(response["body"])["result"]


def median_ms(calls: Sequence[Callable[[], None]]) -> list[float]:
    """Return the median CPU time of each call."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(TURNS):
        for call, own in zip(calls, samples, strict=True):
            call()  # fills the processor's caches, which the call before it used
            started = time.process_time()
            call()
            own.append((time.process_time() - started) * 1000)
    return [median(own) for own in samples]


VIEWS = {"engine": engine_pass, "complete round": complete_round}


def main(lengths: list[int], pipe: int) -> None:
    figures = {
        tool.__name__: {
            name: median_ms([view(tool, steps) for steps in lengths]) for name, view in VIEWS.items()
        }
        for tool in (numbers, progress, models)
    }
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"replays": figures}, out)


if __name__ == "__main__":
    *given, last = map(int, sys.argv[1:])
    main(given, last)
