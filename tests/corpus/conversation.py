"""A call from its first request to its end: rounds, tasks, views, pages, and answers through the model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode

from corpus.answers import ANSWERS
from corpus.client import Client, deployed
from corpus.client_kinds import KINDS
from corpus.deployment import WORKER, Function, World
from corpus.deviations import DEVIATIONS
from corpus.features import Feature, make_server
from support.html_form import parse

MAX_REQUESTS = 14
QUESTIONS, PARKED = "mcp-roundtrip/questions", "mcp-roundtrip/parkedCall"
_KEY = re.compile(r'^Key: "([^"]+)"', re.MULTILINE)

CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tool": ("tools/call", {"name": "play", "arguments": {"subject": "orders"}}),
    "prompt": ("prompts/get", {"name": "play", "arguments": {"subject": "orders"}}),
    "resource": ("resources/read", {"uri": "play://orders"}),
}
"""The request that calls the feature of each kind."""


@dataclass
class Conversation:
    """A client, its user and the workers of the function. `answer` is how the user answers first."""

    client: Client
    kind: str = "tool"
    answer: str = "accept"
    worker: Function | None = None
    deviation: str = ""
    """What the client does with the first state, besides sending it: see `deviations`."""
    model_answers: dict[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    """The argument with which a caller without an identity continues a call that waits."""
    view: Mapping[str, Any] = field(default_factory=dict)
    """What the view knows of its call."""
    requests: int = 0

    @property
    def world(self) -> Any:
        return self.client.world

    def run(self) -> dict[str, Any]:
        """Call the feature, and go on until the call has ended. Returns the last response."""
        response = self.go_on(self.call())
        assert not self.deviation, f"no state of which it {self.deviation}"
        assert self.answer == "accept", f"no question to {self.answer}"
        return response

    def call(self, **more: Any) -> dict[str, Any]:
        """Send the call, as it is or with further params."""
        method, params = CALLS[self.kind]
        given: dict[str, Any] = {**params, **more}
        if self.model_answers or self.code:
            relayed = {"input_responses": self.model_answers} if self.model_answers else {}
            given["arguments"] = {**given["arguments"], **relayed, **self.code}
        if self.client.kind.augments_tasks and self.kind == "tool":
            given.setdefault("task", {"ttl": 600_000})
        response = self.client.request(method, given)
        self.work()
        return response

    def go_on(self, response: dict[str, Any]) -> dict[str, Any]:
        """React to responses until one asks for nothing more."""
        while self.requests < MAX_REQUESTS:
            self.requests += 1
            following = self._react(response)
            if following is None:
                break
            response = following
        return response

    def _react(self, response: dict[str, Any]) -> dict[str, Any] | None:
        result, error = response.get("result", {}), response.get("error", {})
        meta = result.get("_meta", {})
        self.code = meta.get(PARKED, {}).get("arguments", {})
        if error.get("code") == -32042:
            self.world.notes["paid"] = True
            return self.call()
        if result.get("resultType") == "input_required":
            return self._next_round(result)
        if "task" in result or result.get("resultType") == "task":
            self.follow_task(result.get("task", result)["taskId"])
            return None
        if QUESTIONS in meta and self.client.kind.capabilities.get("extensions"):
            return self._use_view(meta[QUESTIONS])
        if PARKED in meta:
            return self._continue_parked(meta[PARKED], result)
        if keys := _KEY.findall(_text(result)):
            return self._answer_as_model(keys)
        return None

    def _next_round(self, result: Mapping[str, Any]) -> dict[str, Any] | None:
        requests, params = result.get("inputRequests", {}), {"requestState": result["requestState"]}
        if requests:
            params["inputResponses"] = self.respond(requests)
        return self._deviate(params) or self.call(**params)

    def respond(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Return the user's answers to requests; the first ones as `answer` says."""
        how, self.answer = self.answer, "accept" if requests else self.answer
        if any(each.get("params", {}).get("mode") == "url" for each in requests.values()):
            self.world.notes["paid"] = how == "accept"
        return {key: ANSWERS[how](each) for key, each in requests.items()}

    def _deviate(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """Do what `deviation` says once; None if the round is to be sent as usual."""
        deviation, self.deviation = self.deviation, ""
        if not deviation:
            return None
        return DEVIATIONS[deviation](self, params)

    def work(self) -> None:
        account, worker = self.world.account, self.worker
        while worker is not None and (account.invocations or account.messages):
            for _, event in _taken(account.invocations):
                worker.work(event)
            for number, (queue, delay_s, body) in enumerate(_taken(account.messages)):
                self.world.clock.sleep(delay_s)
                arn = f"arn:aws:sqs:eu-west-1:000000000000:{queue.rpartition('/')[2]}"
                handle = {"messageId": f"message-{number}", "receiptHandle": f"receipt-{number}"}
                worker.work({"Records": [{**handle, "body": body, "eventSourceARN": arn}]})

    def follow_task(self, task_id: str) -> None:
        if self.client.kind.augments_tasks:
            self._follow_augmented_task(task_id)
            return
        for _ in range(6):
            task = self.client.request("tasks/get", {"taskId": task_id}).get("result", {})
            self.work()
            if task.get("status") == "input_required":
                answers = self.respond(task["inputRequests"])
                self.client.request("tasks/update", {"taskId": task_id, "inputResponses": answers})
                self.work()
            elif task.get("status") != "working":
                break
            else:
                self.world.clock.sleep(61)

    def _follow_augmented_task(self, task_id: str) -> None:
        for _ in range(4):
            task = self.client.request("tasks/get", {"taskId": task_id}).get("result", {})
            response = self.client.request("tasks/result", {"taskId": task_id})
            result = response.get("result", {})
            if result.get("resultType") != "input_required" or task.get("status") == "failed":
                break
            answers = self.respond(result["inputRequests"])
            meta = {"io.modelcontextprotocol/related-task": {"taskId": task_id}}
            self.client.request("tasks/input_response", {"inputResponses": answers, "_meta": meta})
            self.work()

    def _use_view(self, questions: Mapping[str, Any]) -> dict[str, Any] | None:
        if questions["status"] in ("complete", "ended"):
            return None
        self.view = {**self.view, **questions}
        self.world.clock.sleep(questions.get("retryAfterMs", 0) / 1000)
        return self.answer_in_view(questions.get("requests", {}) if questions["status"] == "asking" else {})

    def answer_in_view(self, asked: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        """Answer through the tool of the view, with changed arguments. None removes one."""
        arguments = {name: self.view.get(name) for name in ("tool", "arguments", "state")}
        changed = {**arguments, "answers": self.respond(asked), **changes}
        given = {name: value for name, value in changed.items() if value is not None}
        return self.client.request("tools/call", {"name": "answer_questions", "arguments": given})

    def _continue_parked(self, parked: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        if "url" in parked:
            self.use_page(parked["url"])
        elif keys := _KEY.findall(_text(result)):
            return self._answer_as_model(keys)
        else:
            self.world.notes["paid"] = True
        return self.call()

    def _answer_as_model(self, keys: list[str]) -> dict[str, Any]:
        how, self.answer = self.answer, "accept"
        for key in keys:
            form = (
                {"vcpus": 4, "tier": "dev"}
                if key == "size"
                else {"color": "red", "shade": "red"}.get(key, True)
            )
            self.model_answers[key] = {"decline": {"action": "decline"}, "invalid": [1]}.get(how, form)
        return self.call()

    def use_page(self, url: str) -> None:
        """Open a link, and send its form as the user fills it in."""
        page = self.client.page(url).get("body", "")
        how, self.answer = self.answer, "accept"
        for each in (how, "accept") if how == "invalid" else (how,):
            self.client.page(url, "POST", urlencode(form_fields(page, each)), origin="null")


def _taken(queued: list[Any]) -> list[Any]:
    taken = list(queued)
    queued.clear()
    return taken


def _text(result: Mapping[str, Any]) -> str:
    return "\n".join(block.get("text", "") for block in result.get("content", ()))


def form_fields(page: str, how: str) -> list[tuple[str, str]]:
    """Return what a browser posts: hidden fields, the first choices, and texts where they are required."""
    action = how if how in ("decline", "cancel") else "accept"
    fields: list[tuple[str, str]] = []
    for control in parse(page):
        if control.tag not in ("input", "button", "select", "textarea"):
            continue
        given = {name: value or "" for name, value in control.attributes.items()}
        name, value, kind = given.get("name", ""), given.get("value", ""), given.get("type", "text")
        is_new = name not in dict(fields)
        if control.tag == "select":
            fields.append((name, "+00:00" if "Time zone" in given.values() else ""))
        elif value in ("accept", "decline", "cancel"):
            fields += [(name, value)] * (is_new and value == action)
        elif kind in ("hidden", "radio"):
            fields += [(name, value)] * is_new
        elif kind != "checkbox":
            usual = {"date": "2026-08-02"}.get(kind, "text" if control.tag == "textarea" else "4")
            required = "many" if how == "invalid" else value or usual
            fields.append((name, required if "required" in given else value))
    return fields


def talk(
    world: World,
    *body: str,
    kind: str = "tool",
    client: str = "shows forms and URLs",
    mode: str = "none",
    source: str = "http_api",
    settings: Mapping[str, str] | None = None,
    answer: str = "accept",
    deviation: str = "",
    is_notified: bool = False,
    **options: Any,
) -> Conversation:
    """Deploy a feature with this body, and return the conversation of a client that has opened.

    `is_notified`: the client asks for notifications. `options` are those of Feature.
    """
    feature = Feature(body, kind=kind, **{"dialect": KINDS[client].augments_tasks, **options})
    make = partial(make_server, feature, world)
    meta = {"progressToken": "p1", "io.modelcontextprotocol/logLevel": "debug"} if is_notified else None
    opened = deployed(world, make, client=client, mode=mode, source=source, settings=settings, meta=meta)
    has_table = "MCP_TASK_TABLE" in (settings or {})
    worker = Function(world, make, WORKER, opened.function.environment) if has_table else None
    return Conversation(opened, kind, answer, worker, deviation)


def run(body: tuple[str, ...], world: World, **options: Any) -> None:
    """Deploy a feature with this body, and play the conversation of a client with it."""
    talk(world, *body, **options).run()
