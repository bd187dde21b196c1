"""Workers: messages of queues, repeated deliveries, other versions of the code, and failing calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from corpus.cases.tasks import SIZE, Act, Running, fail, play_acts, poll, wait, work
from corpus.deployment import QUEUE, QUEUED_TASKS, TASKS, WORKER, Function, World
from corpus.features import Feature, make_server
from corpus.recording import Case


def cases() -> Iterator[Case]:
    yield from _workers()
    yield from _faults()


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


def _workers() -> Iterator[Case]:
    messages: dict[str, Callable[[Running], list[dict[str, Any]]]] = {
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
    for name, make in messages.items():
        yield Case(f"worker: {name} after its pass", _batch, make)
    for name in ("one message twice", "a message that was moved", "a dead letter of Lambda"):
        yield Case(f"worker: {name}", _batch, messages[name], works=False)
    yield Case("worker: little time is left", _batch, messages["one message twice"], works=False, time_s=9)
    yield Case("worker: a message cannot be hidden", _unhidden)
    yield Case("worker: an event without a task", _event, {})
    yield Case("worker: a task that does not exist", _event, {"task": "x#y"})
    yield Case("worker: an invocation twice", _twice, None)
    yield Case("worker: a lost invocation again", _twice, "invocation-1")
    yield Case("worker: a message until its task is abandoned", _abandoned)
    for name, body in {
        "without its tool": None,
        "with another first step": ("task", "other step"),
        "with another question": ("task", "confirm", "step"),
        "with one more step": ("task", "form", "other step", "step"),
    }.items():
        yield Case(f"worker: a new version {name}", _new_version, body)


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
    fail("sqs", "ChangeMessageVisibility", "AccessDenied", 400)(running)
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


def _abandoned(world: World) -> None:
    """Deliver one message again and again, which loses a worker each time."""
    running = Running(world, ("long task", "step that is always killed"), QUEUED_TASKS)
    worker, event = running.worker, {"Records": [_message(running)]}
    for _ in range(11):
        worker.work(event)
        world.clock.sleep(1_000)
    running.poll()
    worker.work(event)


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


def _faults() -> Iterator[Case]:
    body = ("task", "step", "other step", "form")
    for operation in ("GetItem", "PutItem", "UpdateItem", "Query"):
        fails = partial(fail, "dynamodb", operation, times=1)
        for skip, number in enumerate(("first", "second") if operation != "Query" else ("only",)):
            acts: tuple[Act, ...] = (fails(skip=skip), work, poll)
            yield Case(f"worker: a failure of the {number} {operation}", play_acts, body, acts, TASKS)
            if operation in ("PutItem", "UpdateItem"):
                acts = (fails(status=0, skip=skip, is_done=True), work, poll)
                name = f"worker: a lost response of the {number} {operation}"
                yield Case(name, play_acts, body, acts, TASKS)
        acts = (fails(times=3), work, wait(70), poll, work, poll)
        yield Case(f"worker: {operation} fails", play_acts, body, acts, TASKS)
