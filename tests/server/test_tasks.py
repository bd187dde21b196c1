"""The ids of tasks, which are unguessable and known to their callers only, and tasks of changed builds."""

import re
from typing import ClassVar

import pytest
from pydantic import BaseModel, field_validator

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip_testing import WITH_TASKS, Player
from support.client_requests import FORMS, TASKS, refused
from support.deployment import Deployment
from support.task_tools import run_step

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


server = Server("rules")


@server.tool(task="optional")
def job(ctx: Context, label: str) -> dict[str, str]:
    ctx.run_as_task(ttl_ms=60_000)
    return {"label": ctx.step("work", run_step, label)}


@server.tool(task="required")
def asks_twice(ctx: Context) -> str:
    ctx.run_as_task()
    name, size = ctx.ask(Elicit("name", "Name?", str), Elicit("size", "Size?", int))
    return f"{name} {size}"


def send(deployment, method, task_id):
    return deployment.request(method, taskId=task_id, inputResponses={})


def test_ids_are_unguessable_and_fit_into_a_header(deployment):
    ids = [deployment.start("job", label="x") for _ in range(200)]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32}", task_id) for task_id in ids)
    assert len(set(ids)) == len(ids)
    # 192 random bits: no place in them is the same in all, or the same in two out of three.
    for place in zip(*ids, strict=True):
        assert max(map(place.count, place)) < 30


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_id_is_invalid_params(deployment, method):
    known = deployment.run_task("asks_twice")
    unknown = ("A" * 32, "", "x", "../../etc", "é" * 32, "A" * 100_000, "M", "a#M")
    similar = (known.swapcase(), f" {known}", f"{known}\n", f"{known}\0", known[:-1])
    for task_id in (*unknown, *similar, None, 7, True, [known], {"id": known}):
        assert refused(send(deployment, method, task_id)) == (400, -32602), task_id
    assert deployment.error(method, inputResponses={})["code"] == -32602


@pytest.mark.parametrize("method", METHODS)
def test_a_request_about_a_task_needs_the_capability_itself_and_its_caller(deployment, method):
    params = {"taskId": deployment.start("job", label="x"), "inputResponses": {}}
    malformed = {**params, "inputResponses": "yes"}
    assert deployment.by(capabilities=FORMS).error(method, **malformed)["code"] == -32021
    assert deployment.by(user="bob").error(method, **params)["code"] == -32602
    assert deployment.status(params["taskId"]) == "working"


def test_a_question_that_changes_gets_a_key_of_its_own_and_an_unchanged_one_keeps_its_key():
    """A wire key is used for one request in the lifetime of a task (ext-tasks, "Input Requests")."""
    server, price = Server("prices"), [1]

    @server.tool(task="required")
    async def pay(ctx: AsyncContext) -> str:
        await ctx.run_as_task()

        async def nap(branch: AsyncContext) -> None:
            for number in range(4):
                await branch.sleep(f"nap {number}", 60_000)

        async def ask(branch: AsyncContext) -> int:
            tip = await branch.elicit("tip", f"What is the tip for {price[0]}?", int)
            await branch.elicit("sure", "Sure?", bool)
            return tip

        done = await ctx.gather({"nap": nap, "ask": ask})
        return f"{price[0]} + {done['ask']}"

    deployment = Deployment(server)
    task_id = deployment.run_task("pay")

    def asked_after_a_nap():
        deployment.clock.advance(60)
        deployment.poll(task_id)
        deployment.run_workers()
        return deployment.poll(task_id)["inputRequests"]

    first = deployment.poll(task_id)["inputRequests"]
    assert asked_after_a_nap() == first
    price[0] = 2
    second = asked_after_a_nap()
    assert (first.keys(), second.keys()) == ({"ask/tip"}, {"ask/tip~2"})
    assert "for 2?" in second["ask/tip~2"]["params"]["message"]
    deployment.resume(task_id, **{"ask/tip~2": 3})
    price[0] = 3  # the answer no longer counts, also not in passes before the next one
    deployment.resume(task_id, **{"ask/sure": True})
    assert [asked_after_a_nap().keys() for _ in range(2)] == [{"ask/tip~3"}] * 2
    deployment.resume(task_id, **{"ask/tip~3": 4})
    assert deployment.text_of(task_id) == "3 + 4"


def test_a_url_that_changes_after_the_task_has_waited_for_it_is_sent_again():
    server, url = Server("urls"), ["https://one.test"]
    left = [False, False, True]

    @server.tool(task="required")
    def pay(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.elicit_url("page", "Pay there.", url[0], done=lambda: left.pop(0))
        ctx.elicit("sure", "Sure?", bool)

    deployment = Deployment(server, capabilities={"elicitation": {"form": {}, "url": {}}, **TASKS})
    task_id = deployment.run_task("pay")
    deployment.resume(task_id, page={"action": "accept"})
    while left:
        deployment.clock.advance(60)
        deployment.poll(task_id)
        deployment.run_workers()
    url[0] = "https://two.test"
    deployment.resume(task_id, sure=True)
    [asked] = deployment.poll(task_id)["inputRequests"].values()
    assert asked["params"]["url"] == "https://two.test"


def test_the_last_progress_before_a_task_sleeps_is_its_status_message():
    server = Server("naps")

    @server.tool(task="required")
    def nap(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.progress(1, 2, "first")
        ctx.progress(2, 2, "second" * 1_000)
        ctx.sleep("nap", 60_000)

    deployment = Deployment(server)
    message = deployment.poll(deployment.run_task("nap"))["statusMessage"]
    assert message == ("second" * 1_000)[:4_096]


def test_a_task_that_has_ended_acknowledges_what_comes_late_and_stays_as_it_is(deployment):
    task_id = deployment.run_task("job", label="x")
    ended = deployment.poll(task_id)
    for method in METHODS:
        assert deployment.result(method, taskId=task_id, inputResponses={})["resultType"] == "complete"
    assert deployment.poll(task_id) == ended


def test_an_answer_that_a_new_build_refuses_is_replaced_by_the_next_one():
    class Size(BaseModel):
        cpus: int
        is_limited: ClassVar[bool] = False

        @field_validator("cpus")
        @classmethod
        def check(cls, cpus: int) -> int:
            if cls.is_limited and cpus > 4:
                raise ValueError("at most 4")
            return cpus

    def provision(ctx: Context) -> int:
        ctx.run_as_task()
        size = ctx.elicit("size", "How large?", Size)
        ctx.elicit("sure", "Sure?", bool)
        return size.cpus

    built = Server("rules")
    built.tool(task="required")(provision)
    asked = Player(built, WITH_TASKS).call("provision").task.answer(size={"cpus": 8})
    Size.is_limited = True
    refused_one = asked.answer(sure=True)
    assert "at most 4" in refused_one.question("size")
    assert refused_one.answer(size={"cpus": 2}).structured == 2


def test_a_default_that_a_new_build_takes_for_an_answered_question_counts_in_the_next_pass():
    def build(*, asks_for_roots: bool) -> Server:
        def provision(ctx: Context) -> str:
            ctx.run_as_task()
            if asks_for_roots:
                where = str(ctx.list_roots("where", default=()))
            else:
                where = ctx.elicit("where", "Where?", str)
            ctx.elicit("sure", "Sure?", bool)
            ctx.step("create", int)
            ctx.elicit("keep", "Keep it?", bool)
            return where

        built = Server("rules")
        built.tool(task="required")(provision)
        return built

    builds = [build(asks_for_roots=False), build(asks_for_roots=True)]
    playing = Player(lambda: builds[0], {**FORMS, **TASKS})
    asked = playing.call("provision").task.answer(where="here")
    builds.pop(0)
    assert asked.answer(sure=True).answer(keep=True).text == "()"


@pytest.mark.parametrize("has_table", [True, False])
def test_open_tasks_are_served_after_their_tool_has_lost_its_task(deployment, has_table):
    plain = Server("rules")

    @plain.tool
    def asks_twice(ctx: Context) -> str:
        name, size = ctx.ask(Elicit("name", "Name?", str), Elicit("size", "Size?", int))
        return f"{name} {size}"

    asked, cancelled = (deployment.run_task("asks_twice") for _ in range(2))
    deployed = deployment.by(server=plain, has_table=has_table)
    assert "extensions" not in deployed.result("server/discover")["capabilities"]
    if has_table:
        deployed.resume(asked, name="a", size=2)
        assert deployed.text_of(asked) == "a 2"
        deployed.result("tasks/cancel", taskId=cancelled)
        assert deployed.status(cancelled) == "cancelled"
    else:
        assert [refused(send(deployed, method, asked)) for method in METHODS] == [(404, -32601)] * 3
