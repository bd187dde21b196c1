"""Calls of clients that cannot be asked by the protocol: asked on a page, continued when made again."""

from itertools import count
from typing import Annotated

import pytest
from pydantic import AfterValidator

from mcp_roundtrip import Context, Server
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore, WorkerKilled
from support.client_requests import FORMS, TASKS, next_round, text
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.task_tools import meanwhile, ran, run_step

server = Server("parked")


def effect(name: str) -> str:
    number = len(ran) + 1
    return f"{run_step(name)} {number}"


@server.tool
def order(ctx: Context, item: str) -> list[str]:
    reserved = ctx.step("reserve", effect, "reserved")
    size = ctx.elicit("size", f"How many {item}, at {reserved}?", int)
    charged = ctx.step("charge", effect, f"charged {size}")
    ctx.elicit("send", f"Send it, {charged}?", bool)
    return [reserved, charged, ctx.step("dispatch", effect, "sent")]


@server.tool
def confirm(ctx: Context, item: str = "tea") -> str:
    answer = ctx.elicit("sure", f"Order {item}?", bool)
    return ctx.step("order", effect, f"{item} {answer}")


@server.tool
def sign(ctx: Context) -> str:
    ctx.elicit("sure", "Really?", bool)
    return ctx.signed_link("link", "https://x.test")


@server.tool(task="optional")
def provision(ctx: Context) -> str:
    ctx.step("prepare", effect, "prepared")
    ctx.elicit("size", "How large?", int)
    ctx.step("reserve", effect, "reserved")
    ctx.run_as_task()
    return ctx.step("create", effect, "created")


@server.tool
def confirm_slowly(ctx: Context) -> str:
    ctx.elicit("sure", "Really?", bool)
    return effect("pass")


@server.tool
def summarize(ctx: Context) -> str:
    ctx.elicit("sure", "Really?", bool)
    return ctx.sample("summary", "Summarize.", max_tokens=10).text


def be_known(name: str) -> str:
    raise ValueError(f"{name} is unknown")


@server.tool
def greet(ctx: Context) -> str:
    return ctx.elicit("name", "Who?", Annotated[str, AfterValidator(be_known)])


@server.tool(channels=("model",))
def relayed(ctx: Context) -> str:
    ctx.step("prepare", effect, "prepared")
    return "x" * ctx.elicit("number", "How many?", int)


@pytest.fixture(params=[False, True], ids=["2026-07-28", "2025-11-25"])
def deployment(request):
    version = LEGACY_VERSION if request.param else PROTOCOL_VERSION
    return Deployment(server, version=version, capabilities={})


modern = pytest.mark.parametrize("deployment", [False], indirect=True)


def test_a_client_that_adds_an_id_of_its_own_to_each_call_continues_the_same_call(deployment):
    asked = deployment.text("confirm", toolCallId="call_1", sessionId="s")
    deployment.answer(asked, sure=True)
    assert deployment.text("confirm", toolCallId="call_2") == "tea True 1"


def test_the_model_does_not_read_why_an_answer_was_refused_as_that_may_quote_it(deployment):
    deployment.answer(deployment.text("greet"), name="Ada")
    again = deployment.text("greet")
    assert ("Who?" in again, "Ada" in again) == (True, False)


def test_a_call_whose_tool_changed_starts_from_its_beginning_when_it_is_made_again(deployment):
    def build(question: str) -> Server:
        def buy(ctx: Context) -> str:
            ctx.elicit("which", question, str)
            ctx.step("pay", effect, "paid")
            ctx.elicit("mail", "Send a mail?", bool)
            return "bought"

        built = Server("parked")
        built.tool(buy)
        return built

    before, after = (deployment.by(server=build(question)) for question in ("Which?", "Which one?"))
    before.answer(before.text("buy"), which="a")
    before.answer(before.text("buy"), mail=True)
    assert after.call_error("buy")["data"] == {"changedKey": "which"}
    assert "Which one?" in after.text("buy")


@modern
def test_a_missing_capability_is_repeated_unless_the_request_declares_it(deployment):
    deployment.answer(deployment.text("summarize"), sure=True)
    refused = deployment.call_error("summarize")
    assert (refused["code"], refused["data"]["requiredCapabilities"]) == (-32021, {"sampling": {}})
    assert deployment.call_error("summarize") == refused
    client = deployment.by(capabilities={"sampling": {}, **FORMS})
    asked = client.post_call("summarize", {}, **next_round(client.call("summarize"), sure=True))["result"]
    assert [*asked["inputRequests"]] == ["summary"]
    paged = deployment.by(capabilities={"sampling": {}})
    paged.answer(paged.text("summarize"), sure=True)
    assert "cannot be asked" in paged.error_text("summarize")


@modern
def test_a_call_that_cannot_become_a_task_yet_keeps_its_steps(deployment):
    client, resuming = (deployment.by(capabilities=each) for each in (TASKS, {**TASKS, **FORMS}))
    in_its_state = next_round(resuming.call("provision"), size=1)
    client.answer(client.text("provision"), size=1)
    deployment.table.max_open = 1
    deployment.text("confirm")
    refused, repeated = client.send_call("provision"), resuming.send_call("provision", {}, **in_its_state)
    assert (refused.status, "These steps" in refused.body) == (429, False)
    assert (repeated.status, "is repeated: reserve." in repeated.body) == (429, True)
    throttled = FaultyStore(deployment.store, lambda operation: operation.name.startswith("put_new"))
    deployment.table.max_open = 2
    failed = client.by(store=throttled).call_error("provision")
    lost = resuming.by(store=throttled).post_call("provision", {}, **in_its_state)["error"]
    assert (failed["code"], "These steps" in failed["message"]) == (-32603, False)
    assert (lost["code"], "is repeated: prepare, reserve." in lost["message"]) == (-32603, True)
    assert client.call("provision")["resultType"] == "task"
    assert deployment.call_error("provision")["code"] == -32021, "this client cannot follow it"
    assert ran == ["prepared"] * 2 + ["reserved"] * 3, "once for each request that stored nothing"


def test_a_call_that_a_concurrent_one_parked_repeats_no_step_although_the_table_fails(deployment):
    operations = count()
    failing = FaultyStore(deployment.store, lambda each: each.keys[0][1] == TASK and next(operations) == 2)
    meanwhile.append(lambda: deployment.text("order", item="tea"))
    failed = deployment.by(store=failing).call_error("order", item="tea")
    assert (failed["code"], "These steps" in failed["message"]) == (-32603, False)
    assert "at reserved 2?" in deployment.text("order", item="tea")


def test_a_pass_that_has_lost_its_lease_does_not_return_its_own_result(deployment):
    deployment.answer(deployment.text("confirm_slowly"), sure=True)
    others = []

    def overtake():
        deployment.clock.advance(40)
        others.append(deployment.text("confirm_slowly"))

    meanwhile.append(overtake)
    assert "still running" in deployment.text("confirm_slowly")
    assert others == ["pass 2"] == [deployment.text("confirm_slowly")]


def play(deployment, crash_in=None, killed_call=0, is_done=False):
    """Make the call until it ends; return the store that killed one request, which was then repeated."""
    crashed = None
    for number in range(3):
        for attempt in count():
            if (number, attempt) == (crash_in, 0):
                crashed = CrashingStore(deployment.store, killed_call, is_done)
                try:
                    asked = deployment.by(store=crashed).text("order", item="tea")
                except WorkerKilled:
                    deployment.clock.advance(40)  # its lease
                    continue
            else:
                asked = deployment.text("order", item="tea")
            break
        if number < 2:
            deployment.answer(asked, **({"size": 3} if number == 0 else {"send": True}))
    return crashed


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("crash_in", [0, 1, 2])
def test_a_crash_at_any_call_of_the_store_loses_nothing(deployment, crash_in, is_done):
    """A step that ran and was not recorded runs again; a first request is repeated from its beginning."""
    kills = []
    for killed_call in count():
        ran.clear()
        fresh = deployment.by(store=MemoryStore(), table=None)
        crashed = play(fresh, crash_in, killed_call, is_done)
        assert fresh.tasks[-1].status is Status.COMPLETED
        if not crashed.killed_at:
            break
        kills.append(crashed.killed_at)
        expected = ["reserved", "charged 3", "sent"]
        is_parked = is_done and crashed.killed_at.startswith("put_new_and_update")
        if crash_in == 0 and crashed.killed_at != "get C" and not is_parked:
            expected.insert(0, "reserved")
        elif crash_in and crashed.killed_at.startswith("put_new J#") and not is_done:
            expected.insert(crash_in, expected[crash_in])
        assert ran == expected, crashed.killed_at
    assert len(kills) == (5, 8, 7)[crash_in], kills


@modern
def test_a_question_for_the_model_is_asked_by_a_client_that_can_show_it(deployment):
    assert "How many?" in deployment.text("relayed")
    asked = deployment.by(capabilities=FORMS).call("relayed")
    assert [*asked["inputRequests"]] == ["number"]


@pytest.mark.parametrize(("channels", "user_only"), [(["page"], False), (["model", "page"], True)])
def test_a_question_for_the_model_is_asked_on_the_page_after_a_release_that_wants_the_user(
    deployment, channels, user_only
):
    def relayed(ctx: Context) -> str:
        ctx.step("prepare", effect, "prepared")
        return "x" * ctx.elicit("number", "How many?", int, user_only=user_only)

    released = Server("parked")
    released.tool(channels=channels)(relayed)
    assert "How many?" in deployment.text("relayed")
    after = deployment.by(server=released)
    relayed_answer = {"input_responses": {"number": 5}} if user_only else {}
    after.answer(after.text("relayed", **relayed_answer), **{"number~2": 3})
    assert after.text("relayed") == "xxx"
    assert ran == ["prepared"]


@modern
def test_the_state_of_a_call_for_the_model_gets_a_link_after_a_release_without_that_channel(deployment):
    def slow(ctx: Context) -> str:
        ctx.step("wait", deployment.clock.advance, 27)
        ctx.checkpoint()
        return ctx.elicit("sign", "Which sign?", str) * ctx.elicit("number", "How many?", int)

    servers = [Server("parked"), Server("parked")]
    for each, channels in zip(servers, (["model"], ["page"]), strict=True):
        each.tool(channels=channels)(slow)
    client = deployment.by(server=servers[0], capabilities={"sampling": {}})
    again = next_round(client.call("slow"))
    assert "Which sign?" in text(client.post_call("slow", **again)["result"])
    assert "How many?" in client.text("slow", input_responses={"sign": "x"})
    after = client.by(server=servers[1])
    after.answer(text(after.post_call("slow", **again)["result"]), **{"number~2": 3})
    assert after.text("slow") == "xxx"


def test_a_pass_without_keys_is_an_error_of_its_call_which_continues_when_they_are_back(deployment):
    def fail():
        raise KeyServiceError("ThrottlingException")

    deployment.answer(deployment.text("sign"), sure=True)
    without_keys = deployment.by(replaced_ports={"links": fail})
    assert without_keys.call_error("sign")["code"] == -32603
    assert without_keys.failures[-1] == "state_unavailable"
    deployment.clock.advance(90)
    assert deployment.text("sign").startswith("https://x.test")
