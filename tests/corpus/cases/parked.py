"""Calls that wait in the table, on the page, in views and through the model: answered, repeated, refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from corpus.cases.tasks import Act, fail, recover, wait
from corpus.conversation import PARKED, QUESTIONS, Conversation, form_fields, talk
from corpus.deployment import AUDIENCE, TASKS, World
from corpus.recording import Case

CLIENTS: Final = {
    "declares nothing": ("page",),
    "shows apps": ("app", "page"),
    "2025-11-25, declares nothing": ("page",),
    "2025-11-25, shows apps": ("app", "page"),
    "2025-06-18, declares nothing": ("model",),
}

NO_TABLE: Final = {"MCP_TASK_TABLE": "", "MCP_TASK_WORKER": ""}


class Waiting:
    """A call that waits for its user, and what can be done with it."""

    def __init__(self, world: World, body: tuple[str, ...], **options: Any) -> None:
        self.world = world
        settings = {**TASKS, **options.pop("settings", {})}
        self.form = ""
        self.talk: Conversation = talk(world, *body, **{"mode": "jwt", **options}, settings=settings)
        self.url, self.view = f"{AUDIENCE}/questions?token=" + "x" * 43, dict[str, Any]()
        self.call()

    def call(self) -> None:
        """Call again, and note where the questions are."""
        meta = self.talk.call().get("result", {}).get("_meta", {})
        self.url = meta.get(PARKED, {}).get("url", self.url)
        self.view = {**self.view, **meta.get(QUESTIONS, {})}

    def page(self, method: str = "GET", body: str | None = None, **headers: str) -> None:
        """Send a request to the page, and keep its form."""
        response = self.talk.client.page(self.url, method, body, **headers)
        if method == "GET" and form_fields(response["body"], "accept"):
            self.form = response["body"]

    def submit(self, how: str = "accept", **changes: str) -> None:
        """Send the form that the page had last."""
        if not self.form:
            self.page()
        self.page("POST", urlencode([*form_fields(self.form, how), *changes.items()]))

    def answer_in_view(self, **changes: Any) -> None:
        self.talk.view = self.view
        result = self.talk.answer_in_view(self.view.get("requests", {}), **changes)
        self.view |= result.get("result", {}).get("_meta", {}).get(QUESTIONS, {})


call, page, submit, in_view = Waiting.call, Waiting.page, Waiting.submit, Waiting.answer_in_view


def post(body: str, **headers: str) -> Act:
    return lambda waiting: waiting.page("POST", body, **headers)


def _notes(**notes: Any) -> Act:
    return lambda waiting: waiting.world.notes.update(notes)


def _as(person: str) -> Act:
    def act(waiting: Waiting) -> None:
        waiting.talk.client = waiting.talk.client.another(person=person)

    return act


FORM: Final = ("form", "step")
STORIES: Final[Mapping[str, tuple[tuple[str, ...], tuple[Act, ...]]]] = {
    "answered on the page": (FORM, (page, submit, call, call)),
    "answered twice": (FORM, (submit, submit, call)),
    "answered with other values afterwards": (FORM, (submit, partial(submit, how="decline"), call)),
    "answered after the end": (FORM, (submit, call, submit)),
    "declined": (FORM, (partial(submit, how="decline"), call)),
    "cancelled": (FORM, (partial(submit, how="cancel"), call)),
    "answered with invalid values": (FORM, (partial(submit, how="invalid"), submit, call)),
    "answered for another version of the form": (FORM, (partial(submit, version="x"), call)),
    "not answered": (FORM, (call, call)),
    "called with a different caller": (FORM, (_as("bob"), call, _as("alice"), call)),
    "opened with an unknown link": (
        FORM,
        (lambda waiting: setattr(waiting, "url", f"{AUDIENCE}/questions?token=" + "x" * 43), page, submit),
    ),
    "looked at": (FORM, (partial(page, method="HEAD"), partial(page, method="DELETE"))),
    "posted by another site": (
        FORM,
        (post("a=b", origin="https://evil.example"), post("a=b", sec_fetch_site="cross-site")),
    ),
    "posted as JSON": (FORM, (post("{}", content_type="application/json"),)),
    "posted with broken escapes": (FORM, (post("token=%zz"),)),
    "posted with a large body": (FORM, (post("a=" + "x" * 1_000_001),)),
    "opened after it expired": (FORM, (wait(3_700), page, submit, call)),
    "asks two forms": (("step", "two forms", "other step"), (page, submit, call, call)),
    "asks again after an answer": (("form", "step", "choice"), (submit, call, page, submit, call)),
    "asks at a URL": (("url", "step"), (call, _notes(paid=True), submit, call, call)),
    "asks for a confirmation": (("confirm", "step"), (submit, call)),
    "asks with a default": (("default", "step"), (submit, call)),
    "changes its question": (FORM, (_notes(again=" Now?"), submit, call, call)),
    "runs long after the answer": (("form", "long step", "other step"), (submit, call, call, call)),
    "runs for three requests": (
        ("slow step", "other slow step", "third slow step", "form", "step"),
        (call, call, submit, call),
    ),
    "loses a request in a step": (
        ("form", "step that is killed", "other step"),
        (submit, call, call, wait(40), call),
    ),
    "has a large result": (("form", "large result"), (submit, call, call)),
    "raises after the answer": (("form", "exception"), (submit, call, call)),
    "refuses after the answer": (("form", "refusal"), (submit, call, call)),
    "becomes a task": (("form", "task", "step"), (submit, call, call)),
    "samples after the answer": (("form", "sampling"), (submit, call)),
    "retries a step": (("form", "slowly retried step", "step"), (submit, call, wait(91), call)),
}
"""How a parked call is treated -> the body of its tool, and what happens."""

LEGACY: Final = "2025-11-25, shows apps"
ALSO_LEGACY: Final = (
    *("answered on the page", "called with a different caller", "asks two forms", "changes its question"),
    *("runs for three requests", "has a large result", "becomes a task", "samples after the answer"),
    *("answers", "answers as another user", "asks four questions", "answers a call that becomes a task"),
    "answers without a state",
)
"""What clients of earlier versions meet, too, on the page and in views."""

VIEWS: Final[Mapping[str, tuple[tuple[str, ...], tuple[Act, ...]]]] = {
    "answers": (FORM, (in_view, call)),
    "answers twice": (FORM, (in_view, in_view, call)),
    "answers after the page": (FORM, (submit, in_view, call)),
    "asks where the call stands": (FORM, (partial(in_view, answers={}),)),
    "declines": (FORM, (partial(in_view, answers={"size": {"action": "decline"}}), call)),
    "answers with invalid values": (
        FORM,
        (partial(in_view, answers={"size": {"action": "accept", "content": {}}}), in_view, call),
    ),
    "asks four questions": (("form", "step", "choice", "confirm", "other step"), (in_view,) * 4 + (call,)),
    "answers with a malformed answer": (FORM, (partial(in_view, answers={"size": 1}),)),
    "answers what was not asked": (FORM, (partial(in_view, answers={"other": {"action": "accept"}}),)),
    "answers with a broken state": (FORM, (partial(in_view, state="x"),)),
    "answers with a state of another tool": (FORM, (partial(in_view, tool="none"),)),
    "answers with other arguments": (FORM, (partial(in_view, arguments={"subject": "invoices"}),)),
    "answers without a state": (FORM, (partial(in_view, state=1),)),
    "answers as another user": (FORM, (_as("bob"), in_view)),
    "answers too late": (FORM, (wait(700), in_view)),
    "answers two questions, one after the other": (("form", "step", "choice"), (in_view, in_view, call)),
    "waits for a long step": (("form", "long step", "other step"), (in_view, wait(2), in_view, in_view)),
    "waits for a URL": (("url", "step"), (in_view, _notes(paid=True), wait(2), in_view)),
    "answers a call that becomes a task": (("form", "task", "step"), (in_view, in_view)),
}
"""What a view does -> the body of its tool, and what happens."""


def cases() -> Iterator[Case]:
    for name, (body, acts) in STORIES.items():
        task = "optional" if "task" in body else None
        for client in ("declares nothing", *((LEGACY,) if name in ALSO_LEGACY else ())):
            options: dict[str, Any] = {"client": client, "channels": CLIENTS[client], "task": task}
            yield Case(f"parked: client {client}, call {name}", play_acts, body, acts, **options)
    for name, (body, acts) in VIEWS.items():
        options = {"channels": ("app",), "task": "optional" if "task" in body else None}
        for client in ("shows apps", *((LEGACY,) if name in ALSO_LEGACY else ())):
            title = f"view of the client {client}, parked, {name}"
            yield Case(title, play_acts, body, acts, client=client, **options)
        if "task" not in body and submit not in acts:
            options |= {"client": "shows apps", "settings": NO_TABLE}
            yield Case(f"view without a table, {name}", play_acts, body, acts, **options)
    for client in ("shows apps", "2025-11-25, declares nothing", "2025-06-18, declares nothing"):
        yield Case(f"parked: client {client} over the limit", _second, client, CLIENTS[client])
    client = "shows apps"
    channels = CLIENTS[client]
    for operation, failing in FAILING.items():
        before = () if submit in failing else (submit,)
        tried = (act for each in failing for act in (fail("dynamodb", operation), each, recover, each))
        options = {"client": client, "channels": channels}
        yield Case(f"parked: {operation} fails", play_acts, FORM, (*before, *tried), **options)


FAILING: Final[Mapping[str, tuple[Act, ...]]] = {
    "GetItem": (page, submit, call),
    "PutItem": (submit, call),
    "UpdateItem": (submit, call),
    "Query": (call,),
}
"""Operation -> what of an answer on the page calls it."""


def play_acts(body: tuple[str, ...], acts: tuple[Act, ...], world: World, **options: Any) -> None:
    waiting = Waiting(world, body, **options)
    for act in acts:
        act(waiting)


def _second(client: str, channels: tuple[str, ...], world: World) -> None:
    settings = {**TASKS, "MCP_MAX_OPEN_TASKS": "1"}
    options: dict[str, Any] = {"client": client, "channels": channels, "mode": "jwt", "settings": settings}
    first = talk(world, "form", **options)
    first.call()
    for body in (("form",), ("step", "form"), ("step", "confirm", "other step"), ("long step", "form")):
        second = talk(world, *body, **options)
        second.call(arguments={"subject": "invoices"})
        second.call(arguments={"subject": "invoices"})
