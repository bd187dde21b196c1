"""A round that is sent again: its flow becomes one task, and the answers of one request count."""

from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.client_requests import APPS, TASKS, app_status, next_round, text
from support.deployment import Deployment

server = Server("shop")
charged = []
concurrent = []


@pytest.fixture(autouse=True)
def nothing_charged():
    charged.clear()
    concurrent.clear()


def charge(account: str, key: str) -> str:
    charged.append((account, key))
    return account


def finish(ctx: Context, account: str) -> str:
    key = ctx.idempotency_key("charge")
    return ctx.step("charge", charge, account, key, at_most_once=True)


def ask_twice(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    return account


@server.tool(task="optional")
def optional(ctx: Context) -> str:
    account = ask_twice(ctx)
    ctx.run_as_task()
    return finish(ctx, account)


@server.tool(task="optional")
def prepares(ctx: Context) -> str:
    account = ask_twice(ctx)
    ctx.step("prepare", str)
    ctx.run_as_task()
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("call", range(7))
def test_at_the_limit_two_rounds_in_every_order_become_one_task(call, is_done):
    deployment, other = Deployment(server, max_open=1), []
    first = deployment.call("prepares")
    asked, rival = (deployment.retry("prepares", first, account=account) for account in ("acc-1", "acc-2"))

    def overtake():
        other.append(deployment.retry("prepares", rival, sure=True))

    store = CrashingStore(deployment.store, call, is_done, on_reached=overtake)
    task = deployment.by(store=store).retry("prepares", asked, sure=True)
    assert other == [task]
    deployment.clock.advance(1)
    deployment.run_workers()
    assert deployment.retry("prepares", asked, sure=True) == task
    assert len(charged) == len(deployment.tasks) == 1
    assert deployment.status(task["taskId"]) == "completed"
    last = deployment.retry("prepares", deployment.call("prepares"), account="acc-1")
    assert deployment.retry("prepares", last, sure=True)["resultType"] == "task", "no place is left over"


class RepeatedRounds(RuleBasedStateMachine):
    """A client that sends rounds of one flow in any order and with any answers, and processes that are lost.

    The flow becomes at most one task. The account that is charged is one that was answered, and it is charged
    once.
    """

    def __init__(self):
        super().__init__()
        charged.clear()
        self.deployment = Deployment(server)
        self.first, self.second = self.deployment.call("optional"), []
        self.task_ids = set()

    def process(self, call, is_done):
        store = self.deployment.store
        return self.deployment.by(store=store if call is None else CrashingStore(store, call, is_done))

    def send(self, asked, process, **answers):
        with suppress(WorkerKilled):
            result = process.retry("optional", asked, **answers)
            if result["resultType"] == "task":
                self.task_ids.add(result["taskId"])
            else:
                self.second.append(result)

    crashes = st.none() | st.integers(0, 8)

    @rule(account=st.sampled_from(["a", "b", "c"]), call=crashes, is_done=st.booleans())
    def answer_first(self, account, call, is_done):
        self.send(self.first, self.process(call, is_done), account=account)

    @precondition(lambda self: self.second)
    @rule(data=st.data(), sure=st.booleans(), call=crashes, is_done=st.booleans())
    def answer_second(self, data, sure, call, is_done):
        self.send(data.draw(st.sampled_from(self.second)), self.process(call, is_done), sure=sure)

    @precondition(lambda self: self.deployment.sent)
    @rule(call=crashes, is_done=st.booleans())
    def work(self, call, is_done):
        with suppress(WorkerKilled):
            self.process(call, is_done).run_worker()

    @rule()
    def wait(self):
        self.deployment.clock.advance(20)

    @invariant()
    def there_is_one_task(self):
        assert len(self.task_ids) <= 1
        assert len(self.deployment.tasks) <= 1
        assert len(charged) <= 1


RepeatedRounds.TestCase.settings = settings(max_examples=20, stateful_step_count=12, deadline=None)
test_a_flow_becomes_at_most_one_task = RepeatedRounds.TestCase


page_server = Server("page")
is_signed_in = False


@pytest.fixture
def parked():
    return Deployment(page_server, capabilities={"elicitation": {"form": {}}}, round_ms=5_000)


@pytest.fixture
def sign_in(monkeypatch):
    """Return a function that answers the question behind the link of a result."""

    def answer(deployment, said):
        deployment.answer(said, login={"action": "accept"})
        monkeypatch.setitem(globals(), "is_signed_in", True)

    return answer


def second_round(client, tool):
    asked = client.call(tool)
    return lambda account: client.retry(tool, asked, account=account)


@page_server.tool(task="optional")
def signs_in(ctx: Context) -> str:
    """Its second question is one that a client with forms cannot show. Then it becomes a task, if it can."""
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: is_signed_in)
    ctx.run_as_task()
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


@page_server.tool
def never_a_task_signs_in(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.step("prepare", str)
    ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: is_signed_in)
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


@pytest.mark.parametrize("max_open", [0, 1])
@pytest.mark.parametrize("tool", ["signs_in", "never_a_task_signs_in"])
def test_a_round_whose_call_was_parked_continues_that_call_also_at_the_limit(parked, sign_in, tool, max_open):
    parked.table.max_open = max_open
    answer = second_round(parked, tool)
    said = text(answer("acc-1"))
    assert parked.token(text(answer("acc-2"))) == parked.token(said)
    sign_in(parked, said)
    assert text(answer("acc-3")) == "acc-1"
    parked.clock.advance(300)  # an equal call without a state begins a new one
    assert text(answer("acc-4")) == "acc-1"
    assert len(charged) == len(parked.tasks) == 1


@page_server.tool(task="optional", channels=["app"])
def signs_in_through_a_view(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    if account == "acc-1":
        ctx.elicit_url("login", "Sign in.", "https://login.example/", done=lambda: True)
    ctx.run_as_task()
    return finish(ctx, account)


def test_a_view_whose_call_became_a_task_by_another_answer_ends():
    """The host declares tasks, and its view cannot follow one. Without a page, no call is parked."""
    extensions = {**TASKS["extensions"], **APPS["extensions"]}
    capabilities = {"elicitation": {"form": {}}, "extensions": extensions}
    settings = {"audience": "urn:mcp"}
    host = Deployment(page_server, user=None, capabilities=capabilities, replaced_settings=settings)
    answer = second_round(host, "signs_in_through_a_view")
    asked = answer("acc-1")
    assert answer("acc-2")["resultType"] == "task"
    late = host.answer_in_app(asked, login={"action": "accept"})
    assert (late["isError"], app_status(late)) == (True, "ended")
    assert host.outcome == "answers_late"
    assert charged == []


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
def test_a_round_whose_flow_is_stored_in_another_way_meanwhile_continues_there(parked, first, then):
    """One answer parks the call, the other one makes it a task."""
    client = parked.by(capabilities={**parked.capabilities, **TASKS})
    answer = second_round(client, "signs_in_for_one_account")
    overtaking = []
    concurrent.append(lambda: overtaking.append(answer(first)))
    repeated = answer(then)
    if first == "acc-2":
        assert [repeated] == overtaking
    else:
        [overtook] = overtaking
        assert client.token(text(repeated)) == client.token(text(overtook))
    assert len(client.tasks) == 1


def test_a_round_whose_parked_call_became_a_task_gets_that_task(parked, sign_in):
    client = parked.by(capabilities={**parked.capabilities, **TASKS})
    again = next_round(client.call("signs_in"), account="acc-1")
    sign_in(client, text(client.post_call("signs_in", **again)["result"]))
    client.table.dispatcher.lost_dispatch = 0
    task = client.post_call("signs_in", **again)["result"]
    assert task["resultType"] == "task"
    client.clock.advance(300)
    assert not client.sent
    assert client.post_call("signs_in", **again)["result"]["taskId"] == task["taskId"]
    assert [pk.partition("#")[2] for _, pk in client.sent] == [task["taskId"]]
    assert parked.post_call("signs_in", **again)["error"]["code"] == -32021
    in_other_dialect = structs.replace(client.table.tasks(), dialect="sep-2322")
    other = client.by(replaced_ports={"tasks": lambda: in_other_dialect})
    assert other.post_call("signs_in", **again)["error"]["code"] == -32602
