"""Random conversations of several clients of one user, whose calls wait, become tasks, and are lost.

Each response depends on what its own request declares, not on other requests (SEP-2663).
"""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, Elicit, Server, ToolError
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, TASKS_EXTENSION
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.client_requests import (
    APPS,
    ASKABLE,
    FORMS,
    QUESTIONS,
    TASKS,
    TOKEN,
    accepted,
    answer_arguments,
    next_round,
)
from support.deployment import Deployment
from support.stored_tasks import answer_link

server = Server("shop", channels=("app", "page", "default"))
price = [1]
"""The price in the questions, which changes."""


@server.tool(task="optional")
def order(ctx: Context) -> str:
    ctx.elicit("size", "How large?", int)
    ctx.step("reserve", int)
    ctx.run_as_task(ttl_ms=300_000)
    ctx.ask(Elicit("sure", f"Pay {price[0]}?", int), Elicit("gift", "Wrap it?", int))
    if ctx.in_task:
        ctx.sleep("nap", 30_000)
    if ctx.elicit("again", "Again?", int) > 2:
        raise ToolError("Not so often.")
    return "ordered"


@server.tool(task="required")
async def branches(ctx: AsyncContext) -> None:
    await ctx.run_as_task(ttl_ms=300_000)

    async def nap(branch: AsyncContext) -> None:
        await branch.sleep("nap", 20_000)
        await branch.elicit("sure", f"Pay {price[0]}?", int)

    async def ask(branch: AsyncContext) -> None:
        await branch.elicit("sure", f"Pay {price[0]}?", int)

    await ctx.gather({"a": nap, "b": ask})


CLIENTS = {
    "asks and follows": ASKABLE,
    "follows": TASKS,
    "asks": FORMS,
    "shows": APPS,
    "shows and follows": {"extensions": {**TASKS["extensions"], **APPS["extensions"]}},
    "nothing": {},
}
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
ENDS = ("completed", "failed", "cancelled")


@dataclass
class Seen:
    """What the responses have said about a task."""

    questions: dict[str, Any] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    end: Any = None
    is_gone: bool = False


class Conversation:
    def __init__(self, seed: int) -> None:
        price[0] = 1
        self.random = Random(seed)
        self.deployment = Deployment(server)
        self.tasks: dict[str, Seen] = {}
        self.rounds: list[tuple[str, Any]] = []
        self.shown: list[Any] = []
        self.links: list[str] = []

    def act(self) -> None:
        weights = {self.call: 4, self.retry: 3, self.answer_in_app: 2, self.answer_on_page: 3}
        weights |= {self.update: 3, self.cancel: 1, self.intrude: 1, self.work: 3, self.change: 2}
        [action] = self.random.choices(list(weights), list(weights.values()))
        action()

    def send(self, kind: str, **params: Any) -> Any:
        """Return the response to a `tools/call` of a client, whose process may be killed."""
        client = self.deployment.by(capabilities=CLIENTS[kind])
        if self.random.random() < 0.15:
            store = CrashingStore(client.store, self.random.randrange(8), self.random.random() < 0.5)
            client = client.by(store=store)
        return client.post("tools/call", **params)

    def answers(self, keys: Any) -> dict[str, Any]:
        """Return answers to some of these questions and to others, a few of them malformed."""
        chosen = [key for key in (*sorted(keys), "sure", "b/sure~2") if self.random.random() < 0.8]
        given = [*map(accepted, (1, 2, 3, 3, "x")), {"action": "decline"}]
        return {key: self.random.choice(given) for key in chosen}

    def call(self) -> None:
        kind, tool = self.random.choice(list(CLIENTS)), self.random.choice(["order", "branches"])
        if self.random.random() < 0.2:
            client = self.deployment.by(version=LEGACY_VERSION, capabilities=CLIENTS[kind]).connected()
            result = client.call(tool)
            assert result["content"]
            return
        self.check(kind, tool, self.send(kind, name=tool, arguments={}))

    def retry(self) -> None:
        if self.rounds:
            tool, asked = self.random.choice(self.rounds)
            kind, answers = self.random.choice(list(CLIENTS)), self.answers(asked.get("inputRequests", {}))
            sent = self.send(kind, name=tool, arguments={}, **next_round(asked, **answers))
            self.check(kind, tool, sent)

    def check(self, kind: str, tool: str, answer: Any) -> None:
        if "error" in answer:
            return
        result, declared = answer["result"], CLIENTS[kind]
        self.links += TOKEN.findall(json.dumps(result))
        match result["resultType"]:
            case "task":
                assert TASKS_EXTENSION in declared.get("extensions", {})
                self.tasks.setdefault(result["taskId"], Seen())
                self.poll(result["taskId"])
            case "input_required":
                assert not result.get("inputRequests") or "elicitation" in declared
                self.rounds.append((tool, result))
            case "complete" if "state" in result["_meta"].get(QUESTIONS, {}):
                self.shown.append(result)

    def answer_in_app(self) -> None:
        if self.shown:
            asked = self.random.choice(self.shown)
            keys = asked["_meta"][QUESTIONS]["requests"]
            arguments = answer_arguments(asked, **self.answers(keys))
            answer = self.send("shows and follows", name="answer_questions", arguments=arguments)
            assert answer.get("result", {}).get("resultType") in (None, "complete")

    def answer_on_page(self) -> None:
        if self.links:
            token = self.random.choice(self.links)
            asked = self.deployment.links.find(token).requests
            answer_link(self.deployment.links, token, dict.fromkeys(asked, accepted(1)))

    def poll(self, task_id: str) -> None:
        answer, seen = self.deployment.post("tasks/get", taskId=task_id), self.tasks[task_id]
        seen.is_gone = seen.is_gone or "error" in answer
        if seen.is_gone:
            assert answer["error"]["code"] == -32602
            return
        task = answer["result"]
        assert seen.end in (None, task), "an end does not change"
        seen.end = task if task["status"] in ENDS else None
        for key, question in task.get("inputRequests", {}).items():
            assert key not in seen.answered
            assert seen.questions.setdefault(key, question) == question
        seen.open = set(task.get("inputRequests", {}))
        self.links += TOKEN.findall(json.dumps(task))

    def update(self) -> None:
        if self.tasks:
            task_id = self.random.choice(list(self.tasks))
            self.poll(task_id)
            seen = self.tasks[task_id]
            answers = self.answers(seen.open)
            if "result" in self.deployment.update(task_id, **answers):
                seen.answered |= seen.open & answers.keys()
            self.poll(task_id)

    def cancel(self) -> None:
        if self.tasks:
            task_id = self.random.choice(list(self.tasks))
            self.deployment.cancel(task_id)
            self.poll(task_id)

    def intrude(self) -> None:
        if self.tasks:
            params = {"taskId": self.random.choice(list(self.tasks)), "inputResponses": {}}
            method = self.random.choice(METHODS)
            assert self.deployment.by(capabilities=FORMS).error(method, **params)["code"] == -32021
            assert self.deployment.by(user="bob").error(method, **params)["code"] == -32602

    def work(self) -> None:
        self.deployment.run_workers()
        self.deployment.clock.advance(self.random.choice([1, 5, 31, 61, 301]))

    def change(self) -> None:
        price[0] = self.random.choice([1, 1, 2])


@pytest.mark.parametrize("seed", range(8))
def test_a_response_depends_on_what_its_own_request_declares_and_no_task_changes_after_its_end(
    seed: int,
) -> None:
    for number in range(15):
        conversation = Conversation(100 * seed + number)
        for _ in range(50):
            try:
                conversation.act()
            except WorkerKilled:
                continue
