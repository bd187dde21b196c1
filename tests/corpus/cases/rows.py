"""Rows of the tables that decide how a call asks and continues. The pairwise choice does not reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from corpus.cases.parked import FORM, Waiting, call, in_view, play_acts, submit
from corpus.cases.tasks import CLIENT, DIALECT, SIZE, Running, cancel, fail, recover, wait
from corpus.client_kinds import KINDS
from corpus.conversation import Conversation, run, talk
from corpus.deployment import TASKS, World
from corpus.recording import Case
from corpus.tokens import changed_state

LARGE: Final = {"action": "accept", "content": {"vcpus": 2, "note": "x" * 400_000}}
DECLINED: Final = {"size": {"action": "decline"}}
KMS: Final = ("kms", "Sign", "KMSInternalException")


def cases() -> Iterator[Case]:
    yield from _urls()
    yield from _endings()
    yield from _limits()
    yield from _repetitions()
    for name, (body, acts) in VIEWS.items():
        yield _row(f"a view {name}", play_acts, body, acts, client="shows apps", channels=("app",))


def _row(name: str, play: Callable[..., Any], *arguments: Any, **options: Any) -> Case:
    return Case(f"row: {name}", play, *arguments, **options)


def _talks(name: str, *body: str, **options: Any) -> Case:
    return _row(name, run, body, **options)


# -- URLs of clients that open with `initialize` -----------------------------------------------------------


def _urls() -> Iterator[Case]:
    bodies = (("url",), ("url", "step"), ("step", "url"), ("default", "url"), ("url once a round", "confirm"))
    for body in bodies:
        for client, mode in (("shows forms and URLs", "jwt"), ("forgets its session", "none")):
            name = f"{', '.join(body)} for the client 2025-11-25, {client}, {mode}"
            yield _talks(name, *body, client=f"2025-11-25, {client}", mode=mode)
    client, settings = "2025-11-25, shows forms and URLs", {"MCP_MAX_ROUNDS": "1"}
    for kind in ("prompt", "resource"):
        yield _talks(f"a URL in a {kind}", "url", kind=kind, client=client)
    yield _talks("more URLs than rounds", "url", "other url", client=client, settings=settings)


# -- questions that cannot be asked, and calls that cannot continue ----------------------------------------


def _endings() -> Iterator[Case]:
    for client in ("claude.ai declares nothing", "claude.ai with forms", "2025-11-25, declares nothing"):
        for table in (TASKS, {}):
            where = "a table" if table else "no table"
            options: dict[str, Any] = {"client": client, "settings": table, "is_async": not table}
            name = f"a checkpoint of the client {client}, {where}"
            yield _talks(name, "step", "early checkpoint", "other step", **options)
    yield _talks("an async tool asks at a URL that stays open", "url that stays open", is_async=True)
    options = {"client": "shows apps, follows tasks", "settings": TASKS}
    yield _talks("a URL that stays open, in a view", "url that stays open", "step", **options)
    options = {"mode": "jwt", "settings": {"MCP_MAX_ROUNDS": "2"}, "is_async": True}
    late = ("step", "time passes", "checkpoint", "other step")
    yield _talks("a checkpoint out of time", *late, client="claude.ai declares nothing", **options)
    options = {"task": "optional", "channels": ("model", "default"), "settings": TASKS}
    options["client"] = "claude.ai declares nothing"
    yield _talks("the model is asked in a task", "step", "task", "form", "other step", **options)
    for client, table in (("shows URLs only", {}), ("shows apps", TASKS)):
        settings = {**table, "MCP_MAX_ROUNDS": "1"}
        options = {"client": client, "channels": ("app", "page"), "mode": "jwt", "settings": settings}
        for name, body in {
            "more questions than rounds": ("url", "form", "step", "choice", "other step", "confirm"),
            "more time than rounds": ("step", "long step", "form", "other step", "choice"),
        }.items():
            yield _talks(f"{name}, client {client}", *body, **options)
    options = {"client": "2025-11-25, shows apps", "mode": "jwt", "settings": TASKS}
    options["channels"] = ("page", "app")
    yield _talks("the page comes before the app", "step", "default", "other step", **options)
    yield _talks("an async tool asks for roots", "roots", "step", client=CLIENT, is_async=True)
    options = {"client": "shows URLs only", "channels": ("model",), "mode": "jwt", "settings": TASKS}
    yield _talks("an invalid answer through the model", "step", "form", answer="invalid", **options)
    yield _talks("a decline through the model", "step", "form", answer="decline", **options)
    yield _row("the flow ends during a round", _late)
    yield _row("answers of 45,000 characters", _large_answers)
    for source in ("alb", "http_api"):
        yield _talks(f"a result of 1.2 MB through {source}", "large result", source=source)
    yield _talks("a result of 6 MB after a question", "form", "result of 6 MB")
    yield _talks("many notifications", "many notifications", "step", is_notified=True, source="alb")
    for required in ("elicitation.form", "elicitation.url", "sampling"):
        for client in ("declares nothing", "shows apps", "shows forms", "2025-11-25, declares nothing"):
            options = {"client": client, "mode": "jwt", "requires": (required,), "channels": ()}
            yield _talks(f"a tool requires {required}, client {client}", "form", "step", **options)


def _late(world: World) -> None:
    conversation = talk(world, "form", "long step", "choice", settings={"MCP_FLOW_TTL_S": "610"})
    response = conversation.call()
    world.clock.sleep(595)
    conversation.go_on(response)


def _large_answers(world: World) -> None:
    conversation = talk(world, "sampling", "form", client=CLIENT)
    state = conversation.call()["result"]["requestState"]
    text = {"type": "text", "text": "x" * 45_000}
    answer = {"role": "assistant", "model": "m", "content": text}
    conversation.call(requestState=state, inputResponses={"summary": answer})


# -- limits of open tasks ----------------------------------------------------------------------------------


def _limits() -> Iterator[Case]:
    bodies = {
        "a step, then a link": ("form", "step", "url", "other step"),
        "a link at once": ("url", "step"),
        "steps, then a task": ("form", "step", "task", "other step"),
        "a long step": ("long step", "other step"),
    }
    for name, body in bodies.items():
        for client in ("shows forms", "claude.ai with forms, follows tasks", DIALECT):
            yield _row(f"no place, {name}, client {client}", _occupied, body, client)
    link, client = bodies["a step, then a link"], "claude.ai declares nothing"
    yield _row(f"no place, a step, then a link, client {client}", _occupied, link, client)
    yield _row("no place, a step, then a link, at most 1 round", _occupied, link, DIALECT, rounds="1")
    name, options = "no place for a call that always asks", {"requires": ("elicitation",)}
    yield _row(name, _occupied, ("form", "step"), "2025-11-25, declares nothing", **options)
    for name, body in {
        "a link, then a step and a form": ("url", "step", "form", "other step"),
        "time that passes": ("time passes", "step"),
        "time that passes before a checkpoint": ("time passes", "checkpoint", "form"),
        "a checkpoint at once": ("early checkpoint", "form"),
    }.items():
        for client in ("declares nothing", "2025-11-25, shows apps"):
            title = f"no place to park, {name}, client {client}"
            yield _row(title, _occupied, body, client, channels=("app", "page"))


def _occupied(body: tuple[str, ...], client: str, world: World, *, rounds: str = "9", **options: Any) -> None:
    """Call while the only place is taken, and again after it is free."""
    settings = {**TASKS, "MCP_MAX_OPEN_TASKS": "1", "MCP_MAX_ROUNDS": rounds}
    first = Running(world, ("task", "form"), settings)
    task = "optional" if "tasks" in client or "task" in body else None
    second = talk(world, *body, client=client, task=task, mode="jwt", settings=settings, **options)
    response = second.call()
    for _ in range(3):
        response = second._react(response) or response
    cancel(first)
    second.go_on(second._react(response) or second.call())


# -- rounds that are repeated, and states that are not for this call ---------------------------------------


def _repetitions() -> Iterator[Case]:
    bodies = (("form", "url", "step"), ("form", "step", "task", "other step"), ("form", "long step", "step"))
    for client in ("shows forms", "shows forms and URLs, follows tasks"):
        for body in bodies:
            name = f"the first state again, client {client}, {', '.join(body)}"
            yield _row(name, _again, body, client)
    yield _row("a state of the other dialect", _other_dialect)
    yield _row("a state of a view as a state of a task", _view_of_a_task)
    for operation in ("GetPublicKey", "GenerateMac"):
        yield _row(f"a state cannot be opened, {operation} fails", _unopened, operation)
    yield _row("the table fails in the second round", _table_fails)
    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "of another version": lambda claims: claims["st"].update(v=2),
        "with a broken journal": lambda claims: claims["st"].update(j=[["a", "s"]]),
        "with a journal that is a text": lambda claims: claims.update(st="x"),
        "with an unknown claim": lambda claims: claims.update(x=1),
        "without its request": lambda claims: claims.pop("rq"),
        "that lives too long": lambda claims: claims.update(exp=claims["exp"] + 60),
        "of tomorrow": lambda claims: claims.update(nbf=claims["nbf"] + 86_400),
        "of another audience": lambda claims: claims.update(aud="https://other.example"),
        "that needs a place": lambda claims: claims["st"].update(k=True),
        "of the ninth round": lambda claims: claims.update(rnd=9),
        "of the tenth round": lambda claims: claims.update(rnd=10),
    }
    for name, change in changes.items():
        yield _row(f"a state {name}", _changed, change)
    forms: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}
    augmented: Mapping[str, tuple[dict[str, Any], ...]] = {
        "optional": ({"task": {"ttl": 0}}, {"task": []}, {"task": {}}, forms),
        "required": ({"task": {}}, forms),
        "not possible": ({"task": {}},),
    }
    for task, given in augmented.items():
        for params in given:
            yield _row(f"SEP-2322: {params}, a task is {task}", _augmented, params, task)


def _first_round(world: World, *body: str, **options: Any) -> tuple[Conversation, dict[str, Any]]:
    conversation = talk(world, *body, mode="jwt", **options)
    state = conversation.call()["result"]["requestState"]
    return conversation, {"requestState": state, "inputResponses": {"size": SIZE}}


def _again(body: tuple[str, ...], client: str, world: World) -> None:
    conversation, params = _first_round(world, *body, client=client, task="optional", settings=TASKS)
    response = conversation.call(**params)
    conversation.call(**params)
    conversation.call(**{**params, "inputResponses": DECLINED})
    conversation.go_on(response)
    conversation.call(**params)


def _other_dialect(world: World) -> None:
    options: dict[str, Any] = {"client": DIALECT, "task": "optional", "settings": TASKS}
    conversation, params = _first_round(world, "form", "task", "step", **options)
    conversation.call(**params)
    conversation.client = conversation.client.another(kind=KINDS[CLIENT])
    conversation.call(**params)


def _view_of_a_task(world: World) -> None:
    options = {"client": "shows apps, follows tasks", "task": "optional", "mode": "none"}
    waiting = Waiting(world, ("form", "task", "step"), channels=("app",), **options)
    waiting.talk.call(requestState=waiting.view.get("state"), inputResponses={"size": SIZE})
    in_view(waiting)


def _unopened(operation: str, world: World) -> None:
    conversation, params = _first_round(world, "form", "step")
    conversation.client.restart()
    world.account.fail("kms", operation, "KMSInternalException")
    conversation.call(**params)
    world.account.recover()
    world.clock.sleep(30)
    conversation.call(**params)


def _table_fails(world: World) -> None:
    options: dict[str, Any] = {"client": CLIENT, "task": "optional", "settings": TASKS}
    conversation, params = _first_round(world, "form", "step", "task", **options)
    world.account.fail("dynamodb", "GetItem")
    conversation.call(**params)


def _changed(change: Callable[[dict[str, Any]], Any], world: World) -> None:
    conversation, params = _first_round(world, "form", "step", "choice")
    conversation.go_on(
        conversation.call(**{**params, "requestState": changed_state(params["requestState"], change)})
    )


def _augmented(params: Mapping[str, Any], task: str, world: World) -> None:
    options: dict[str, Any] = {"task": None if task == "not possible" else task, "settings": TASKS}
    conversation = talk(world, "form", "task", "step", client=DIALECT, mode="jwt", **options)
    if "task" not in params:
        conversation.client = conversation.client.another(kind=KINDS["2025-11-25, shows forms and URLs"])
    conversation.go_on(conversation.call(**params))


# -- views -------------------------------------------------------------------------------------------------


def _invalid(waiting: Waiting) -> None:
    empty = {"action": "accept", "content": dict[str, Any]()}
    waiting.answer_in_view(answers=dict.fromkeys(waiting.view.get("requests", {}), empty))


VIEWS: Final[Mapping[str, tuple[tuple[str, ...], tuple[Any, ...]]]] = {
    "answers after other answers": (FORM, (submit, partial(in_view, answers=DECLINED), call)),
    "answers twenty times with invalid values": (FORM, ((_invalid,) * 21 + (call,))),
    "answers a minute after the end": (FORM, (in_view, wait(61), in_view)),
    "answers with 400 KB": (FORM, (partial(in_view, answers={"size": LARGE}),)),
    "answers while the table fails": (FORM, (fail("dynamodb", "GetItem"), in_view, recover, in_view)),
    "answers while writes fail": (FORM, (fail("dynamodb", "UpdateItem"), in_view, recover, in_view)),
    "answers while KMS fails": (("form", "step", "choice"), (fail(*KMS), in_view, recover, in_view)),
    "asks again while KMS fails": (FORM, (fail(*KMS), call, recover, call)),
}
"""What a view does -> the body of its tool, and what happens."""
