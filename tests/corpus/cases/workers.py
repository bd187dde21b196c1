"""Workers: messages of queues, repeated deliveries, other versions of the code, and failing calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from corpus.cases.tasks import SIZE, Running, fail, play_acts, poll, wait, work
from corpus.deployment import QUEUE, QUEUED_TASKS, TASKS, WORKER, Function, World
from corpus.features import Feature, make_server
from corpus.recording import Case


def _message(running: Running, number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return the message of a queue that names the task."""
    running.drop()
    pk = next(
        call["Item"]["pk"]["S"]
        for call in running.world.account.calls
        if call.get("Item", {}).get("sk") == {"S": "A"}
    )
    body = {"task": pk, "queue": QUEUE, **changes.pop("body", {})}
    return {
        "messageId": f"message-{number}",
        "receiptHandle": f"receipt-{number}",
        "body": json.dumps(body),
        "eventSourceARN": "arn:aws:sqs:eu-west-1:000000000000:corpus-tasks",
        **changes,
    }


MESSAGES: Final[Mapping[str, Callable[[Running], list[dict[str, Any]]]]] = {
    "one message": lambda running: [_message(running)],
    "one message twice": lambda running: [_message(running), _message(running, 2)],
    "a broken message beside another": lambda running: [
        _message(running, 2, body={"task": 1}),
        {**_message(running), "body": "{"},
        _message(running, 3),
    ],
    "a message of an unknown task": lambda running: [_message(running, body={"task": "x#y"})],
    "a message without its queue": lambda running: [_message(running, body={"queue": None})],
    "a message that was moved": lambda running: [
        _message(running, eventSourceARN="arn:aws:sqs:eu-west-1:0:other")
    ],
    "a dead letter of Lambda": lambda running: [_message(running, messageAttributes={"RequestID": {}})],
    "an early wake-up": lambda running: [
        _message(running, body={"wake": int((running.world.clock.now + 500) * 1000)})
    ],
    "a late wake-up": lambda running: [_message(running, body={"wake": 0})],
}


def cases() -> Iterator[Case]:
    for name, make in MESSAGES.items():
        yield Case(f"worker: {name} after its pass", _batch, make)
    for name in ("one message twice", "a message that was moved", "a dead letter of Lambda"):
        yield Case(f"worker: {name}", _batch, MESSAGES[name], works=False)
    yield Case("worker: little time is left", _batch, MESSAGES["one message twice"], works=False, time_s=9)
    yield Case("worker: a message cannot be hidden", _unhidden)
    yield Case("worker: an event without a task", _event, {})
    yield Case("worker: a task that does not exist", _event, {"task": "x#y"})
    yield Case("worker: an invocation twice", _twice, None)
    yield Case("worker: a lost invocation again", _twice, "invocation-1")
    for name, new_body in {
        "without its tool": None,
        "with another first step": ("task", "other step"),
        "with another question": ("task", "confirm", "step"),
        "with one more step": ("task", "form", "other step", "step"),
    }.items():
        yield Case(f"worker: a new version {name}", _new_version, new_body)
    body = ("task", "step", "other step", "form")
    for operation in ("GetItem", "PutItem", "UpdateItem", "Query"):
        acts = (fail("dynamodb", operation, times=3), work, wait(70), poll, work, poll)
        yield Case(f"worker: {operation} fails", play_acts, body, acts, TASKS)


def _batch(
    make: Callable[[Running], list[dict[str, Any]]], world: World, works: bool = True, time_s: float = 900
) -> None:
    running = Running(world, ("task", "sleep", "step"), QUEUED_TASKS)
    if works:
        running.work()
    running.worker.work({"Records": make(running)}, time_s)
    running.poll()


def _unhidden(world: World) -> None:
    running = Running(world, ("task", "step"), QUEUED_TASKS)
    world.account.fail("sqs", "ChangeMessageVisibility", "AccessDenied", 400)
    running.work()
    running.poll()


def _event(event: Any, world: World) -> None:
    running = Running(world, ("task", "step"), TASKS)
    running.worker.work(event)


def _twice(request_id: str | None, world: World) -> None:
    running = Running(world, ("task", "step that is killed", "other step"), TASKS)
    [(_, event)] = world.account.invocations
    running.worker.work(event, request_id=request_id)
    running.worker.work(event, request_id=request_id)
    running.poll()


def _new_version(body: tuple[str, ...] | None, world: World) -> None:
    running = Running(world, ("task", "form", "step"), TASKS)
    running.work()
    kind = "tool" if body else "prompt"
    feature = Feature(body or (), kind=kind, task="required" if body else None)
    make = partial(make_server, feature, world)
    running.worker = Function(world, make, WORKER, running.worker.environment)
    running.answer(size=SIZE)
    running.work()
    running.poll()
