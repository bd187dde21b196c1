"""Tasks and their workers: answers, cancellation, expiry, lost workers, queues, and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any, Final

from corpus.conversation import run, talk
from corpus.deployment import TASKS, World
from corpus.recording import Case

CLIENT: Final = "answers everything, follows tasks"
DIALECT: Final = "2025-11-25 with tasks of SEP-2322"
SIZE: Final = {"action": "accept", "content": {"vcpus": 2}}
OTHER_SIZE: Final = {"action": "accept", "content": {"vcpus": 3}}
INVALID: Final = {"action": "accept", "content": {"vcpus": "secret-4711"}}
YES: Final = {"action": "accept", "content": {"value": True}}
LARGE: Final = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x" * 400_000}}

FORM: Final = ("task", "form")
STEP: Final = ("task", "step")

Act = Callable[[Any], Any]


class Running:
    """A task that a client has created, and what can be done with it."""

    def __init__(
        self, world: World, body: tuple[str, ...], settings: Mapping[str, str], **options: Any
    ) -> None:
        self.world = world
        self.is_queued = "MCP_TASK_QUEUE" in settings
        self.is_dialect = options.get("client") == DIALECT
        options = {"client": CLIENT, "task": "required", "mode": "jwt", **options}
        self.talk = talk(world, *body, settings=dict(settings), **options)
        assert self.talk.worker is not None
        self.worker, self.talk.worker = self.talk.worker, None
        result = self.talk.call().get("result", {})
        self.id = result.get("task", result).get("taskId", "")

    def poll(self, client: Any = None) -> dict[str, Any]:
        return (client or self.talk.client).request("tasks/get", {"taskId": self.id})

    def work(self) -> None:
        """Run the dispatched workers until none is left. Only a queue may have none."""
        account = self.world.account
        assert account.invocations or account.messages or self.is_queued, "no worker was dispatched"
        self.talk.worker = self.worker
        self.talk.work()
        self.talk.worker = None

    def answer(self, client: Any = None, **responses: Any) -> None:
        """Send answers to what the task asks, by its own keys."""
        wire = {key.split("~")[0]: key for key in self.poll().get("result", {}).get("inputRequests", {})}
        given = {wire.get(key, key): response for key, response in responses.items()}
        params: dict[str, Any] = {"taskId": self.id, "inputResponses": given}
        method = "tasks/update"
        if self.is_dialect:
            meta = {"io.modelcontextprotocol/related-task": {"taskId": self.id}}
            method, params = "tasks/input_response", {"inputResponses": given, "_meta": meta}
        (client or self.talk.client).request(method, params)

    def cancel(self) -> None:
        self.talk.client.request("tasks/cancel", {"taskId": self.id})

    def result(self) -> None:
        self.talk.client.request("tasks/result", {"taskId": self.id})

    def drop(self) -> None:
        """Lose what was dispatched."""
        self.world.account.invocations.clear()
        self.world.account.messages.clear()


def wait(seconds: float) -> Act:
    return lambda acting: acting.world.clock.sleep(seconds)


def answer(**responses: Any) -> Act:
    return lambda running: running.answer(**responses)


def fail(*fault: Any, **options: Any) -> Act:
    return lambda acting: acting.world.account.fail(*fault, **options)


def recover(acting: Any) -> None:
    acting.world.account.recover()


def as_bob(running: Running) -> None:
    bob = running.talk.client.another(person="bob")
    running.poll(bob)
    running.answer(bob, size=SIZE)
    bob.request("tasks/cancel", {"taskId": running.id})


poll, work, cancel, drop, result = Running.poll, Running.work, Running.cancel, Running.drop, Running.result

STORIES: Final[Mapping[str, tuple[tuple[str, ...], tuple[Act, ...]]]] = {
    "is polled": (STEP, (poll, wait(2), poll, work, poll, poll)),
    "asks, and is answered": (("task", "form", "step"), (work, poll, answer(size=SIZE), poll, work, poll)),
    "gets the same answer twice, and another": (
        FORM,
        (work, answer(size=SIZE), answer(size=SIZE), answer(size=OTHER_SIZE), work, poll),
    ),
    "gets an answer after its end": (FORM, (work, answer(size=SIZE), work, answer(size=OTHER_SIZE), poll)),
    "gets one of two answers": (
        ("task", "two forms", "step"),
        (work, answer(size=SIZE), poll, answer(sure=YES), work, poll),
    ),
    "gets both answers": (("task", "two forms"), (work, answer(size=SIZE, sure=YES), work, poll)),
    "gets an answer that it did not ask for": (FORM, (work, answer(unasked=YES), poll)),
    "gets a malformed answer": (FORM, (work, answer(size="secret-4711"), poll)),
    "gets an invalid answer": (FORM, (work, answer(size=INVALID), work, poll, answer(size=SIZE), work, poll)),
    "gets twenty invalid answers": (
        FORM,
        (work, *(answer(size={"action": "accept", "content": {}}), work) * 20, poll),
    ),
    "gets a large answer": (("task", "sampling"), (work, answer(summary=LARGE), poll)),
    "is declined": (FORM, (work, answer(size={"action": "decline"}), work, poll)),
    "asks after it slept": (("task", "sleep", "form"), (work, poll, wait(61), poll, work, poll)),
    "is answered while it sleeps": (
        ("task", "sleep", "form"),
        (work, answer(size=SIZE), wait(61), poll, work, poll),
    ),
    "belongs to somebody else": (FORM, (work, as_bob, poll)),
    "is cancelled while it asks": (FORM, (work, cancel, poll, answer(size=SIZE), poll)),
    "is cancelled while it sleeps": (("task", "sleep"), (work, cancel, poll)),
    "is cancelled twice before it runs": (STEP, (cancel, poll, cancel, work, poll)),
    "is cancelled after its end": (STEP, (work, cancel, poll)),
    "expires before it runs": (STEP, (wait(601), poll, work, poll)),
    "expires while it asks": (FORM, (work, wait(601), answer(size=SIZE), poll)),
    "expires while a worker is sent": (STEP, (wait(601), work, poll)),
    "is forgotten": (STEP, (work, wait(4_300), poll)),
    "loses its worker before it runs": (STEP, (drop, wait(61), poll, work, poll)),
    "loses each of its workers": (STEP, (*(drop, wait(700), poll) * 5, poll)),
    "loses every worker in a step": (
        ("task", "step that is always killed"),
        (*(work, wait(140), poll) * 5,),
    ),
    "loses its workers until it is abandoned": (
        ("long task", "step that is always killed"),
        (*(work, wait(1_000), poll) * 10, poll),
    ),
    "loses a worker in a step": (
        ("task", "step that is killed"),
        (work, wait(30), poll, wait(40), poll, work, poll),
    ),
    "loses a worker in a step that runs once": (("task", "once, killed"), (work, wait(70), poll, work, poll)),
    "has steps that run once": (("task", "once", "step"), (work, poll)),
    "has a step of 40 s": (("task", "very long step", "step"), (work, poll)),
    "has a step of 70 s": (("task", "step of 70 s", "step"), (work, poll)),
    "has a step of 400 KB": (("task", "step of 400 KB"), (work, poll)),
    "has a result of 300 KB": (("task", "result of 300 KB"), (work, poll)),
    "has a result of 6 MB": (("task", "result of 6 MB"), (work, poll)),
    "has a long status message": (("task", "status message", "form"), (work, poll)),
    "fails with a message": (("task", "refusal"), (work, poll)),
    "raises": (("task", "exception"), (work, poll)),
    "retries a step": (("task", "retried step", "step"), (work, poll)),
    "exhausts a step": (("task", "exhausted step"), (work, poll)),
    "retries a step after a minute": (
        ("task", "slowly retried step"),
        (work, poll, wait(61), poll, work, poll),
    ),
    "has notifications": (("task", "progress", "log", "step"), (work, poll)),
    "asks for roots and sampling": (("task", "roots", "sampling"), (work, poll)),
    "sends a request that tasks have not": (("task", "request"), (work, poll)),
    "asks at a URL": (
        ("task", "url"),
        (work, poll, answer(pay={"action": "accept"}), work, poll, wait(70), poll, work, poll),
    ),
    "runs out of its worker's time": (
        ("long task", "step of 400 s", "other step of 400 s", "step"),
        (work, poll),
    ),
}
"""What a task does -> its body, and what happens to it."""

REQUESTS: Final[Mapping[str, tuple[tuple[Act, ...], Act, Mapping[str, int]]]] = {
    "tasks/get": ((drop, wait(61)), poll, {"GetItem": 0, "UpdateItem": 0}),
    "tasks/update": ((work,), answer(size=SIZE), {"GetItem": 1, "PutItem": 0, "UpdateItem": 0}),
    "tasks/cancel": ((work,), cancel, {"GetItem": 0, "UpdateItem": 0}),
}
"""Method -> what happens before, its act, and its calls, with the number of those that precede them."""

ALSO_IN_DIALECT: Final = (
    *("asks, and is answered", "gets one of two answers", "gets a malformed answer"),
    *("gets an answer after its end", "belongs to somebody else", "is cancelled while it asks"),
    *("is cancelled after its end", "expires while it asks", "is forgotten", "fails with a message"),
    *("sends a request that tasks have not", "has a result of 300 KB", "asks for roots and sampling"),
)


def cases() -> Iterator[Case]:
    for name, (body, acts) in STORIES.items():
        yield Case(f"task: {name}", play_acts, body, acts, TASKS)
        if name in ALSO_IN_DIALECT:
            acts = tuple(result if act is poll else act for act in acts)
            yield Case(f"task: of SEP-2322, {name}", play_acts, body, acts, TASKS, client=DIALECT)
    body, acts = STORIES["loses a worker in a step"]
    options = {"mode": "none", "source": "direct"}
    yield Case("task: of a direct caller, loses a worker in a step", play_acts, body, acts, TASKS, **options)
    yield from _creation()
    for method, (before, act, calls) in REQUESTS.items():
        for operation, skip in calls.items():
            acts = (*before, fail("dynamodb", operation, skip=skip), act, recover, poll)
            yield Case(f"task: {method}, {operation} fails", play_acts, FORM, acts, TASKS)


def play_acts(
    body: tuple[str, ...], acts: tuple[Act, ...], settings: Mapping[str, str], world: World, **options: Any
) -> None:
    running = Running(world, body, settings, **options)
    for act in acts:
        act(running)


def _creation() -> Iterator[Case]:
    for client in ("declares nothing", "shows apps", "2025-11-25, declares nothing"):
        name = f"task: required of the client {client}, which does not follow tasks"
        yield Case(name, run, STEP, client=client, task="required", settings=TASKS)
    yield Case("task: no worker is configured", play_acts, ("task",), (), {**TASKS, "MCP_TASK_WORKER": ""})
    for error, count in {"TooManyRequests": 3, "AccessDenied": 1, "ResourceNotFound": 2}.items():
        name = f"task: creation, {count} invocations fail with {error}Exception"
        yield Case(name, _created_with, "lambda", "Invoke", f"{error}Exception", times=count)
    for name, code, times in (
        ("TransactWriteItems fails with ResourceNotFoundException", "ResourceNotFoundException", inf),
        ("transactions conflict", "TransactionConflictException", 2),
    ):
        fault = ("dynamodb", "TransactWriteItems", code)
        yield Case(f"task: creation, {name}", _created_with, *fault, times=times)


def _created_with(service: str, operation: str, code: str, world: World, times: float) -> None:
    world.account.fail(service, operation, code, 400, times)
    running = Running(world, ("step", "task", "other step"), TASKS)
    world.account.recover()
    if world.account.invocations:
        running.work()
    if running.id:
        running.poll()
