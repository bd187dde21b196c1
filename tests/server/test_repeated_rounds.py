"""A round that is sent again: its flow becomes one task, and the answers of one request count."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from mcp_roundtrip import Context, Server
from mcp_roundtrip.ports import Ports, TaskPort
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION, UI_EXTENSION, UI_MIME_TYPE
from mcp_roundtrip.server import client_behavior
from mcp_roundtrip.server.app_questions import META_QUESTIONS
from mcp_roundtrip.server.options import ANSWER_TOOL
from mcp_roundtrip.tasks.model import RETENTION_MS
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from mcp_roundtrip_testing.workers import NEVER
from support.charging_shop import (
    Client,
    charge,
    charged,
    clocks,
    concurrent,
    count_calls_of_creation,
    finish,
    last_outcome,
    server,
    stored_tasks,
    text_of,
)
from support.parked_deployment import ParkedDeployment
from support.question_links import answer_link
from support.task_deployment import UNDECLARED, TaskDeployment, accepted

FLOW_TTL_S = 3_600
SKEW_S = 5
RETENTION_S = RETENTION_MS / 1_000


@pytest.fixture(autouse=True)
def reset_charged() -> None:
    charged.clear()
    concurrent.clear()


TOOLS = ["optional", "required", "short"]


@pytest.fixture
def deployment() -> TaskDeployment:
    return TaskDeployment(server)


# -- one flow, one task -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_a_round_that_is_sent_again_gets_the_same_task(deployment: TaskDeployment, tool: str) -> None:
    client = Client(deployment, tool)
    task = client.become_task()
    assert task["resultType"] == "task"
    assert client.become_task() == task
    deployment.run_workers()
    assert deployment.status(task["taskId"]) == "completed"
    assert client.become_task() == task
    assert len(stored_tasks(deployment.store)) == len(charged) == 1


def test_a_call_that_becomes_a_task_when_it_is_out_of_time_becomes_one(
    deployment: TaskDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is known to fail at a round without questions, so its call becomes a task."""
    monkeypatch.setattr(client_behavior, "breaks_on_state_only_rounds", lambda info: True)
    client = Client(deployment, "takes_long")
    clocks.append(deployment.clock)
    task = client.become_task()
    assert (task["resultType"], client.become_task()) == ("task", task)
    assert len(stored_tasks(deployment.store)) == 1


def test_a_call_that_becomes_a_task_after_its_last_round_becomes_one(deployment: TaskDeployment) -> None:
    deployment.max_rounds = 2
    client = Client(deployment, "asks_often")
    task = client.become_task()
    assert (task["resultType"], client.become_task()) == ("task", task)
    assert len(stored_tasks(deployment.store)) == 1


@pytest.mark.parametrize("tool", TOOLS)
def test_other_answers_in_a_repetition_do_not_count(deployment: TaskDeployment, tool: str) -> None:
    client = Client(deployment, tool)
    task = client.become_task()
    for repeated in (client.become_task(sure=False), client.repeat_first()["result"]):
        assert repeated["taskId"] == task["taskId"]
    deployment.run_workers()
    assert text_of(deployment, task["taskId"]) == "acc-1"
    assert [account for account, _ in charged] == ["acc-1"]


def test_a_repetition_dispatches_a_worker_whose_dispatch_was_lost(deployment: TaskDeployment) -> None:
    deployment.table.dispatcher.lost_dispatch = 0
    client = Client(deployment)
    task = client.become_task()
    assert not deployment.table.dispatcher.sent
    deployment.clock.advance(16)
    assert client.become_task()["taskId"] == task["taskId"]
    deployment.run_workers()
    assert deployment.status(task["taskId"]) == "completed"


def test_an_ended_task_answers_as_long_as_a_state_of_its_flow_is_accepted(deployment: TaskDeployment) -> None:
    began_at = deployment.clock()
    client = Client(deployment, "short")
    task = client.become_task()
    deployment.run_workers()
    deployment.clock.advance(599)
    assert client.become_task()["taskId"] == task["taskId"]
    [stored] = stored_tasks(deployment.store)
    assert stored.is_terminal
    assert stored.expires_s >= began_at + FLOW_TTL_S + SKEW_S > stored.created_at_ms / 1000 + 1 + RETENTION_S
    assert all(item["exp"] == stored.expires_s for item in deployment.store._items.values())


def test_a_repetition_is_not_refused_above_the_limit(deployment: TaskDeployment) -> None:
    deployment.table.max_open = 1
    for tool in ("optional", "required"):
        client = Client(deployment, tool)
        task = client.become_task()
        assert client.become_task() == task
        deployment.cancel(task["taskId"])


def test_a_repetition_without_the_extension_names_the_capability(deployment: TaskDeployment) -> None:
    client = Client(deployment)
    client.become_task()
    deployment.capabilities = UNDECLARED
    error = client.send(client.states[1], sure=True)["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS_EXTENSION: {}}}


def test_two_flows_of_equal_calls_are_two_tasks(deployment: TaskDeployment) -> None:
    assert Client(deployment).become_task()["taskId"] != Client(deployment).become_task()["taskId"]


def test_a_state_is_no_way_to_the_task_of_another_caller(deployment: TaskDeployment) -> None:
    client = Client(deployment)
    client.become_task()
    deployment.user = "bob"
    assert client.send(client.states[1], sure=True)["error"]["code"] == -32602


def test_a_task_is_found_by_one_read_before_the_function_runs(deployment: TaskDeployment) -> None:
    """A tool that cannot become a task reads nothing."""
    for tool, reads in (("optional", 1), ("never_a_task", 0)):
        counting = CrashingStore(deployment.store, NEVER, is_done=False)
        state = deployment.call(tool)["result"]["requestState"]
        answers = {"account": accepted("acc-1")}
        deployment.call(tool, requestState=state, inputResponses=answers, store=counting)
        assert counting.calls == reads


def test_the_function_does_not_run_in_a_repetition(deployment: TaskDeployment) -> None:
    client = Client(deployment)
    client.become_task()
    counting = CrashingStore(deployment.store, NEVER, is_done=False)
    client.become_task(counting)
    assert counting.calls == 2  # the item that names the task, and the task
    assert last_outcome(deployment) == "task_repeated"


def test_the_log_of_a_repetition_has_the_flow(deployment: TaskDeployment) -> None:
    client = Client(deployment)
    client.become_task()
    deployment.observer.tags.clear()
    client.become_task()
    assert deployment.observer.tags == {"flow": stored_tasks(deployment.store)[0].flow_id}


# -- concurrent rounds, lost processes ----------------------------------------------------------------------


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("max_open", [0, 1])
def test_a_process_that_is_killed_at_any_write_leaves_one_task_or_none(max_open: int, is_done: bool) -> None:
    for call in range(count_calls_of_creation(max_open)):
        charged.clear()
        deployment = TaskDeployment(server)
        deployment.table.max_open = max_open
        client = Client(deployment)
        with suppress(WorkerKilled):
            client.become_task(CrashingStore(deployment.store, call, is_done=is_done))
        deployment.clock.advance(31)  # the place of the lost process lapses
        task = client.repeat_first()["result"]
        if task["resultType"] == "input_required":  # the lost request has stored nothing
            task = client.send(task["requestState"], sure=True)["result"]
        assert client.become_task()["taskId"] == task["taskId"]
        deployment.run_workers()
        assert deployment.status(task["taskId"]) == "completed"
        assert len(charged) == len(stored_tasks(deployment.store)) == 1


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("call", range(7))
def test_at_the_limit_two_rounds_in_every_order_share_their_place(call: int, is_done: bool) -> None:
    """Both have run a step, so a round without a place would continue in rounds, and repeat the effects."""
    deployment = TaskDeployment(server)
    deployment.table.max_open = 1
    client = Client(deployment, "prepares")
    other: list[Any] = []
    store = CrashingStore(
        deployment.store, call, is_done, on_reached=lambda: other.append(client.become_task())
    )
    task = client.become_task(store)
    assert other == [task]
    deployment.run_workers()
    assert len(charged) == len(stored_tasks(deployment.store)) == 1
    assert deployment.status(task["taskId"]) == "completed"
    assert Client(deployment, "prepares").become_task()["resultType"] == "task", "no place is left over"


@pytest.mark.parametrize("max_open", [0, 1])
def test_a_round_that_is_overtaken_after_a_step_gets_the_task_as_it_was_created(
    deployment: TaskDeployment, max_open: int
) -> None:
    """At the limit, it does not continue in rounds: the task would repeat its effects."""
    deployment.table.max_open = max_open
    client = Client(deployment, "prepares")
    first: list[Any] = []

    def overtake() -> None:
        first.append(client.become_task())
        deployment.clock.advance(1)
        deployment.run_workers()

    concurrent.append(overtake)
    assert client.become_task() == first[0]
    assert last_outcome(deployment) == "task_repeated"
    assert len(charged) == len(stored_tasks(deployment.store)) == 1


class RepeatedRounds(RuleBasedStateMachine):
    """A client that sends rounds of one flow in any order and with any answers, and processes that are lost.

    The flow becomes at most one task. The account that is charged is one that was answered, and it is charged
    once.
    """

    def __init__(self) -> None:
        super().__init__()
        charged.clear()
        self.deployment = TaskDeployment(server)
        first = self.deployment.call("optional")["result"]
        self.states = {1: [first["requestState"]], 2: []}
        self.task_ids: set[str] = set()

    def send(self, state: str, key: str, answer: Any, call: int | None, is_done: bool) -> None:
        store = None if call is None else CrashingStore(self.deployment.store, call, is_done)
        params = {"requestState": state, "inputResponses": {key: accepted(answer)}}
        with suppress(WorkerKilled):
            result = self.deployment.call("optional", store=store, **params)["result"]
            if result["resultType"] == "task":
                self.task_ids.add(result["taskId"])
            else:
                self.states[2].append(result["requestState"])

    crashes = st.none() | st.integers(0, 8)

    @rule(account=st.sampled_from(["a", "b", "c"]), call=crashes, is_done=st.booleans())
    def answer_first(self, account: str, call: int | None, is_done: bool) -> None:
        self.send(self.states[1][0], "account", account, call, is_done)

    @precondition(lambda self: self.states[2])
    @rule(data=st.data(), sure=st.booleans(), call=crashes, is_done=st.booleans())
    def answer_second(self, data: Any, sure: bool, call: int | None, is_done: bool) -> None:
        self.send(data.draw(st.sampled_from(self.states[2])), "sure", sure, call, is_done)

    @precondition(lambda self: self.deployment.table.dispatcher.sent)
    @rule(call=crashes, is_done=st.booleans())
    def work(self, call: int | None, is_done: bool) -> None:
        store = None if call is None else CrashingStore(self.deployment.store, call, is_done)
        with suppress(WorkerKilled):
            self.deployment.run_worker(store)

    @rule()
    def wait(self) -> None:
        self.deployment.clock.advance(20)

    @invariant()
    def there_is_one_task(self) -> None:
        assert len(self.task_ids) <= 1
        assert len(stored_tasks(self.deployment.store)) <= 1
        assert len(charged) <= 1


RepeatedRounds.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
test_a_flow_becomes_at_most_one_task = RepeatedRounds.TestCase


# -- parked calls -------------------------------------------------------------------------------------------


page_server = Server("page")
is_signed_in = False


@page_server.tool(task="optional")
def signs_in(ctx: Context) -> str:
    """Its second question is one that a client with forms cannot show."""
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: is_signed_in)
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


@pytest.fixture
def parked() -> ParkedDeployment:
    return ParkedDeployment(page_server, capabilities={"elicitation": {"form": {}}}, round_ms=5_000)


def answer_account(parked: ParkedDeployment, state: str, account: str) -> Any:
    params = {"requestState": state, "inputResponses": {"account": accepted(account)}}
    return parked.post("signs_in", params=params)["result"]


def test_a_round_whose_call_was_parked_continues_that_call(
    parked: ParkedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = parked.post("signs_in")["result"]["requestState"]
    text = answer_account(parked, state, "acc-1")["content"][0]["text"]
    assert parked.token(answer_account(parked, state, "acc-2")["content"][0]["text"]) == parked.token(text)
    answer_link(parked.links, parked.token(text), {"login": {"action": "accept"}})
    monkeypatch.setitem(globals(), "is_signed_in", True)
    assert answer_account(parked, state, "acc-3")["content"][0]["text"] == "acc-1"
    parked.clock.advance(300)  # an equal call without a state begins a new one
    assert answer_account(parked, state, "acc-4")["content"][0]["text"] == "acc-1"
    assert len(charged) == len(parked.tasks()) == 1


@page_server.tool(task="optional", channels=["app"])
def signs_in_through_a_view(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    if account == "acc-1":
        ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: True)
    ctx.run_as_task()
    return finish(ctx, account)


def test_a_view_whose_call_became_a_task_by_another_answer_ends() -> None:
    """The host declares tasks, and its view cannot follow one."""
    extensions = {TASKS_EXTENSION: {}, UI_EXTENSION: {"mimeTypes": [UI_MIME_TYPE]}}
    capabilities = {"elicitation": {"form": {}}, "extensions": extensions}
    host = ParkedDeployment(page_server, user=None, capabilities=capabilities)
    state = host.post("signs_in_through_a_view")["result"]["requestState"]

    def answer(account: str) -> Any:
        params = {"requestState": state, "inputResponses": {"account": accepted(account)}}
        return host.post("signs_in_through_a_view", params=params)["result"]

    asked = answer("acc-1")["_meta"][META_QUESTIONS]
    assert answer("acc-2")["resultType"] == "task"
    given = {name: asked[name] for name in ("tool", "arguments", "state")}
    response = host.respond(ANSWER_TOOL, {**given, "answers": {"login": {"action": "accept"}}})
    late = json.loads(response.body)["result"]
    assert (late["isError"], late["_meta"][META_QUESTIONS]["status"]) == (True, "ended")
    assert host.outcome == "answers_late"
    assert charged == []


@page_server.tool
def never_a_task_signs_in(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.step("prepare", str)
    ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: is_signed_in)
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


@pytest.mark.parametrize("max_open", [0, 1])
def test_a_repeated_round_of_a_tool_without_tasks_continues_its_parked_call_at_the_limit(
    parked: ParkedDeployment, monkeypatch: pytest.MonkeyPatch, max_open: int
) -> None:
    parked.table.max_open = max_open
    state = parked.post("never_a_task_signs_in")["result"]["requestState"]

    def answer(account: str) -> Any:
        params = {"requestState": state, "inputResponses": {"account": accepted(account)}}
        return parked.post("never_a_task_signs_in", params=params)["result"]["content"][0]["text"]

    token = parked.token(answer("acc-1"))
    assert parked.token(answer("acc-2")) == token
    answer_link(parked.links, token, {"login": {"action": "accept"}})
    monkeypatch.setitem(globals(), "is_signed_in", True)
    assert answer("acc-3") == "acc-1"
    assert len(charged) == len(parked.tasks()) == 1


@page_server.tool(task="optional")
def signs_in_for_one_account(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    while concurrent:
        concurrent.pop()()
    if account == "acc-1":
        ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: is_signed_in)
    ctx.run_as_task()
    return finish(ctx, account)


@pytest.mark.parametrize(("first", "then"), [("acc-1", "acc-2"), ("acc-2", "acc-1")])
def test_a_round_whose_flow_is_stored_in_another_way_meanwhile_continues_there(
    parked: ParkedDeployment, first: str, then: str
) -> None:
    """One answer parks the call, the other one makes it a task."""
    declared = {**parked.capabilities, "extensions": {TASKS_EXTENSION: {}}}
    client = replace(parked, capabilities=declared)
    state = client.post("signs_in_for_one_account")["result"]["requestState"]

    def answer(account: str) -> Any:
        params = {"requestState": state, "inputResponses": {"account": accepted(account)}}
        return client.post("signs_in_for_one_account", params=params)["result"]

    overtaking: list[Any] = []
    concurrent.append(lambda: overtaking.append(answer(first)))
    repeated = answer(then)
    if first == "acc-2":
        assert repeated == overtaking[0]
    else:
        tokens = [client.token(each["content"][0]["text"]) for each in (repeated, *overtaking)]
        assert tokens[0] == tokens[1]
    assert len(client.tasks()) == 1


@page_server.tool(task="optional")
def signs_in_and_waits(ctx: Context) -> str:
    """After its second question, it becomes a task, if the client supports that."""
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: is_signed_in)
    ctx.run_as_task()
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


class InOtherDialect(ParkedDeployment):
    """Its requests become tasks of the dialect of SEP-2322."""

    def ports(self, store: TaskStore | None = None) -> Ports:
        def dialect_port() -> TaskPort:
            port = self.table.port(store)
            return structs.replace(port, tasks=structs.replace(port.tasks, dialect="sep-2322"))

        return structs.replace(super().ports(store), tasks=dialect_port)


def test_a_round_whose_parked_call_became_a_task_gets_that_task(
    parked: ParkedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {**parked.capabilities, "extensions": {TASKS_EXTENSION: {}}}
    with_tasks = replace(parked, capabilities=declared)
    with_tasks.table = parked.table
    state = with_tasks.post("signs_in_and_waits")["result"]["requestState"]
    round_two = {"requestState": state, "inputResponses": {"account": accepted("acc-1")}}
    text = with_tasks.post("signs_in_and_waits", params=round_two)["result"]["content"][0]["text"]
    answer_link(with_tasks.links, with_tasks.token(text), {"login": {"action": "accept"}})
    monkeypatch.setitem(globals(), "is_signed_in", True)
    with_tasks.table.dispatcher.lost_dispatch = 0
    task = with_tasks.post("signs_in_and_waits", params=round_two)["result"]
    assert task["resultType"] == "task"
    with_tasks.clock.advance(300)
    assert not with_tasks.table.dispatcher.sent
    repeated = with_tasks.post("signs_in_and_waits", params=round_two)["result"]
    assert repeated["taskId"] == task["taskId"]
    assert [pk.partition("#")[2] for _, pk in with_tasks.table.dispatcher.sent] == [task["taskId"]]
    assert parked.post("signs_in_and_waits", params=round_two)["error"]["code"] == -32021
    other = InOtherDialect(page_server, capabilities=declared, clock=parked.clock)
    other.table = parked.table
    assert other.post("signs_in_and_waits", params=round_two)["error"]["code"] == -32602
