"""The tasks extension: whole flows and single rules, with a store in memory and workers run by the test.

Every result is validated with `support.extension_schemas`: members, types, and values by status.
"""

import re
from typing import ClassVar

import pytest
from pydantic import BaseModel, field_validator

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip_testing import WITH_TASKS, Player, QuestionChanged
from support.client_requests import ASKABLE, FORMS, TASKS, accepted, refused
from support.messages import META
from support.task_tools import run_step

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
LEGACY = {"elicitation": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}
"""The declaration of 2025-11-25."""


server = Server("rules", namespaced_requests=True)


@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@server.tool(task="optional")
def job(ctx: Context, label: str) -> dict[str, str]:
    ctx.run_as_task(ttl_ms=60_000)
    return {"label": ctx.step("work", run_step, label)}


@server.tool(task="required")
def asks_twice(ctx: Context) -> str:
    ctx.run_as_task()
    name, size = ctx.ask(Elicit("name", "Name?", str), Elicit("size", "Size?", int))
    return f"{name} {size}"


prices = []
"""The price in each pass."""


@server.tool(task="required")
async def asks_while_a_branch_sleeps(ctx: AsyncContext) -> None:
    await ctx.run_as_task()

    async def sleep(branch: AsyncContext) -> None:
        for number in range(3):
            await branch.sleep(f"nap {number}", 60_000)

    async def ask(branch: AsyncContext) -> None:
        await branch.elicit("sure", f"Pay {prices.pop(0)}?", bool)

    await ctx.gather({"sleep": sleep, "ask": ask})


@server.tool(task="required")
def samples(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.sample("poem", [{"role": "user", "content": {"type": "text", "text": "A poem"}}], max_tokens=10)
    return "unreached"


def asked(deployment):
    return deployment.run_task("asks_twice")


def send(deployment, method, task_id, **headers):
    body = deployment.body(method, taskId=task_id, inputResponses={})
    return deployment.send(body, **headers)


@pytest.mark.parametrize(
    "params",
    [
        *({"task": task} for task in ({}, {"ttl": 60_000}, None, "yes")),
        {"_meta": {"io.modelcontextprotocol/relatedTaskIds": ["A" * 32]}},
    ],
)
@pytest.mark.parametrize("capabilities", [ASKABLE, FORMS, LEGACY])
def test_a_request_for_a_task_by_the_client_is_ignored(deployment, params, capabilities):
    client = deployment.by(capabilities=capabilities)
    meta = {**META, META_CLIENT_CAPABILITIES: capabilities, **params.pop("_meta", {})}
    plain = client.post_call("greet", {"name": "Ada"}, meta=meta, **params)["result"]
    assert plain["resultType"] == "complete"
    job = client.post_call("job", {"label": "x"}, meta=meta, **params)["result"]
    assert job["resultType"] == ("task" if capabilities is ASKABLE else "complete")
    assert job.get("ttlMs", 60_000) == 60_000


def test_ids_are_unguessable_and_fit_into_a_header(deployment):
    ids = [deployment.start("job", label="x") for _ in range(200)]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32}", task_id) for task_id in ids)
    assert len(set(ids)) == len(ids)
    # 192 random bits: no place in them is the same in all, or the same in two out of three.
    for place in zip(*ids, strict=True):
        assert max(map(place.count, place)) < 30


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_id_is_invalid_params(deployment, method):
    known = asked(deployment)
    unknown = ("A" * 32, "", "x", "../../etc", "é" * 32, "A" * 100_000, "M", "a#M")
    similar = (known.swapcase(), f" {known}", f"{known}\n", f"{known}\0", known[:-1])
    for task_id in (*unknown, *similar, None, 7, True, [known], {"id": known}):
        assert refused(send(deployment, method, task_id)) == (400, -32602), task_id
    assert deployment.error(method, inputResponses={})["code"] == -32602


@pytest.mark.parametrize("method", METHODS)
def test_a_task_of_another_principal_is_unknown_and_unchanged(deployment, method):
    task_id = asked(deployment)
    before = deployment.poll(task_id)
    foreign, unknown = (send(deployment.by(user="bob"), method, each) for each in (task_id, "A" * 32))
    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)
    assert deployment.poll(task_id) == before


def test_a_task_asks_what_was_declared_at_its_creation_and_fails_at_an_unsupported_request(deployment):
    task_id = deployment.start("samples")
    deployment.by(capabilities=TASKS).poll(task_id)
    deployment.run_workers()
    requests = deployment.poll(task_id)["inputRequests"]
    assert [request["method"] for request in requests.values()] == ["sampling/createMessage"]
    failed = deployment.poll(deployment.by(capabilities=TASKS).run_task("samples"))
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32021)
    assert failed["statusMessage"] == failed["error"]["message"]
    assert failed["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


def test_a_question_that_changes_while_it_is_open_has_a_new_key_also_if_it_changes_back(deployment):
    prices[:] = [5, 6, 5]
    task_id = deployment.run_task("asks_while_a_branch_sleeps")
    keys = list(deployment.poll(task_id)["inputRequests"])
    for price in (6, 5):
        deployment.clock.advance(61)
        deployment.poll(task_id)
        deployment.run_workers()
        [(key, request)] = deployment.poll(task_id)["inputRequests"].items()
        assert f"Pay {price}?" in request["params"]["message"]
        assert key not in keys
        keys.append(key)
    before = deployment.poll(task_id)
    for key in keys[:-1]:
        assert "result" in deployment.update(task_id, **{key: accepted(True)})
    assert deployment.poll(task_id) == before


MALFORMED = [None, 7, "yes", [], {}, {"action": "maybe"}, {"action": "accept", "content": [1]}]


@pytest.mark.parametrize(
    "responses",
    [*({"name": accepted("Ada"), "size": value} for value in MALFORMED), None, [], "x", 7],
    ids=str,
)
def test_an_update_with_a_malformed_answer_is_invalid_params_and_stores_nothing(deployment, responses):
    task_id = asked(deployment)
    assert deployment.refusal("tasks/update", taskId=task_id, inputResponses=responses) == (400, -32602)
    assert deployment.poll(task_id)["inputRequests"].keys() == {"size", "name"}
    deployment.resume(task_id, name="Bob", size=3)
    assert deployment.text_of(task_id) == "Bob 3"


def test_an_answer_that_is_too_large_to_be_kept_is_invalid_params_and_stores_nothing(deployment):
    task_id = asked(deployment)
    answers = {"size": accepted(3), "name": accepted("x" * 500_000)}
    assert deployment.refusal("tasks/update", taskId=task_id, inputResponses=answers) == (400, -32602)
    assert deployment.poll(task_id)["inputRequests"].keys() == {"size", "name"}


def test_arguments_that_no_item_can_hold_are_a_tool_error_that_says_so_and_no_task_is_created(deployment):
    assert "arguments are too large" in deployment.error_text("job", label="x" * 500_000)
    assert deployment.outcome == "arguments_too_large"
    assert not deployment.sent


def test_an_answer_to_a_question_that_a_new_build_asks_again_counts_after_steps_of_other_branches():
    def build(question: str) -> Server:
        async def first(branch: AsyncContext) -> int:
            await branch.elicit("size", "How large?", int)
            await branch.elicit("more", "More?", bool)
            return await branch.step("price", int)

        async def second(branch: AsyncContext) -> int:
            size = await branch.elicit("size", question, int)
            await branch.elicit("more", "More?", bool)
            return size

        async def compare(ctx: AsyncContext) -> dict[str, int]:
            await ctx.run_as_task()
            return await ctx.gather({"first": first, "second": second})

        built = Server("rules")
        built.tool(task="required")(compare)
        return built

    builds = [build("How large?"), build("How many CPUs?")]
    playing = Player(lambda: builds[0], WITH_TASKS)
    asked = playing.call("compare").task.answer(**{"first/size": 1, "second/size": 2})
    builds.pop(0)
    with pytest.warns(QuestionChanged):
        again = asked.answer(**{"first/more": True, "second/more": True})
    assert again.question("second/size") == "How many CPUs?"
    ended = again.answer(**{"second/size": 3})
    assert ended.structured == {"first": 0, "second": 3}


def test_an_answer_that_a_new_build_refuses_is_replaced_by_the_next_one():
    class Size(BaseModel):
        cpus: int
        is_limited: ClassVar[bool] = False

        @field_validator("cpus")
        @classmethod
        def check(cls, cpus: int) -> int:
            if cls.is_limited and cpus > 4:
                raise ValueError("must be at most 4")
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
    assert "must be at most 4" in refused_one.question("size")
    assert refused_one.answer(size={"cpus": 2}).structured == 2
