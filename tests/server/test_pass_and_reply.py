"""`tools/call`, round by round, from the view of a client."""

from contextlib import suppress
from typing import Any

import pytest

from mcp_roundtrip import Context, Drift, Elicit, Retry, Server, StepFailed
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip_testing import WITH_TASKS, FakeClock, Player
from support.client_requests import next_round, text
from support.deployment import Deployment, legacy
from support.servers import server_of


def test_an_endless_call_ends_before_clients_give_up():
    def forever(ctx: Context) -> None:
        ctx.elicit_url("never", "Sign in", "https://x.test/page?mcp_link=token#top", done=lambda: False)

    rounds = [Player(server_of(forever)).call("forever")]
    began = rounds[0].player.clock()
    while not rounds[-1].failed:
        rounds.append(rounds[-1].respond({"never": {"action": "accept"}}))
        assert len(rounds) < 20
    assert len(rounds) == 11, "clients go through ten rounds, and stop at the next question"
    assert rounds[-1].result["resultType"] == "complete"
    assert rounds[0].player.clock() - began > 240
    assert "https://x.test/page. " in rounds[-1].text, "the model does not get the token of a link"
    assert "another page" in rounds[-1].text


def test_a_call_that_asks_what_no_task_can_ask_does_not_become_one_when_its_rounds_are_over():
    asking = Server("asking", namespaced_requests=True)

    @asking.tool(task="optional")
    def approve(ctx: Context) -> None:
        for number in range(9):
            ctx.request(f"q{number}", "com.example/approval", {})

    capabilities = {"extensions": {**WITH_TASKS["extensions"], "com.example/approval": {}}}
    play = Player(asking, capabilities=capabilities, ports={"max_rounds": 2}).call("approve", q0={}, q1={})
    assert play.failed
    assert play.outcome == "too_many_rounds"


def test_a_call_whose_steps_outlast_its_last_round_gets_an_error_before_lambda_ends_the_function():
    clock = FakeClock()

    def works(ctx: Context) -> None:
        ctx.now("began")
        for number in range(1_000):
            ctx.step(str(number), clock.advance, 1)

    server = server_of(works)
    client = Deployment(server, clock=clock, user=None, replaced_settings={"max_rounds": 2}, has_table=False)
    assert client.by(capabilities={}).call("works")["resultType"] == "input_required", "the state suffices"
    waits, ended_at = client.call("works"), [clock()]
    for _ in range(2):
        waits = client.retry("works", waits)
        ended_at.append(clock())
    assert "within 2 rounds" in text(waits)
    began = clock()
    assert began - ended_at[1] >= ended_at[1] - ended_at[0] + 2, "the last round uses the reserve"
    restarts = legacy(server, clock=clock)
    refusal = restarts.error_text("works")
    assert "is repeated: 0, 1, 2, 3, 4, …." in refusal
    assert clock() - began < client.round_ms / 1_000
    [(_, fields)] = [each for each in restarts.observer.events if each[0] == "out_of_time"]
    assert {"0", "1"} <= {*fields["after"]}


def test_of_two_answers_to_a_question_that_a_build_did_not_reach_the_first_one_counts():
    def build(*asks: str) -> Server:
        def tool(ctx: Context) -> str:
            answers = [ctx.ask(*(Elicit(key, "?", str) for key in keys)) for keys in asks]
            return "".join(map("".join, answers))

        return server_of(tool)

    client = Deployment(build("ab"))
    asked = client.by(server=build("a", "c")).retry("tool", client.call("tool"), a="1", b="2")
    last = client.by(server=build("a", "c", "b"))
    assert text(last.retry("tool", asked, c="3", b="4")) == "132"


def test_a_flow_ends_an_hour_after_its_first_state_however_often_it_continues():
    def endless(ctx: Context) -> None:
        for number in range(9):
            ctx.elicit(f"q{number}", "More?", str)

    client = Deployment(server_of(endless))
    asked = client.call("endless")
    for number in range(6):
        client.clock.advance(590)
        asked = client.retry("endless", asked, **{f"q{number}": "yes"})
    client.clock.advance(100)
    assert client.post_call("endless", {}, **next_round(asked, q6="yes"))["error"]["code"] == -32602


def test_a_key_service_error_for_a_link_is_an_internal_error_even_if_the_tool_catches_it():
    def link(ctx: Context) -> str:
        with suppress(Exception):
            return ctx.signed_link("link", "https://x.test")
        return "continued"

    def failing() -> Any:
        raise KeyServiceError("ThrottlingException")

    client = Deployment(server_of(link), user=None, replaced_ports={"links": failing})
    assert client.call_error("link")["code"] == -32603
    assert client.failures[0] == "state_unavailable"


@pytest.mark.parametrize(
    ("steps", "named"), [(["reserve", "pay"], "reserve, pay."), ("abcdef", "a, b, c, d, e, ….")]
)
def test_drift_names_the_key_and_some_steps_in_the_error_and_the_key_in_the_log(steps, named):
    def build(message: str) -> Server:
        def tool(ctx: Context) -> str:
            ctx.elicit("which", message, str)
            for step in steps:
                ctx.step(step, int)
            return ctx.elicit("more", "More?", str)

        return server_of(tool)

    builds = [build("Which?"), build("Which?"), build("Which one?")]
    playing = Player(lambda: builds.pop(0))
    drifted = playing.call("tool").answer(which="a").answer(more="b")
    assert drifted.error["code"] == -32603
    assert "'which'" in drifted.error["message"]
    assert "message" in drifted.error["message"]
    assert f"is repeated: {named}" in drifted.error["message"]
    assert drifted.error["data"] == {"changedKey": "which"}
    ((event, error),) = playing.observer.failures
    assert event == "drift"
    assert isinstance(error, Drift)


def test_a_call_that_a_release_ends_in_a_tool_error_names_the_steps_that_a_new_call_repeats():
    def tool(ctx: Context) -> str:
        ctx.step("reserve", int)
        return ctx.elicit("more", "More?", str)

    def narrowed(ctx: Context, region: str) -> str:
        return tool(ctx)

    def broken(ctx: Context) -> str:
        raise LookupError(tool(ctx))

    for released in (narrowed, broken):
        builds = [server_of(tool), Server("released")]
        builds[1].tool(name="tool")(released)
        ended = Player(lambda builds=builds: builds.pop(0)).call("tool").answer(more="yes")
        assert ended.failed
        assert text(ended.result).endswith("is repeated: reserve.")
    assert "repeated" not in Player(server_of(narrowed)).call("narrowed").text


def test_a_task_that_cannot_go_on_names_the_steps_that_have_run():
    servers = [Server("before")]

    @servers[0].tool(task="required")
    def tool(ctx: Context) -> str:
        ctx.step("reserve", int)
        ctx.run_as_task()
        characters = ctx.elicit("characters", "How many?", int)
        return ctx.step("report", lambda: "x" * characters)

    playing = Player(lambda: servers[-1], WITH_TASKS)
    asked = playing.call("tool").task
    too_long = playing.call("tool").task.answer(characters=500_000)
    servers.append(Server("released"))
    for ended in (too_long, asked.answer(characters=500_000)):
        assert ended.error["message"].endswith("is repeated: reserve.")


def test_a_step_whose_error_is_caught_before_a_question_is_logged_because_it_runs_again():
    ran = list[str]()

    def charge(name: str) -> None:
        ran.append(name)
        raise ConnectionError

    def pay(ctx: Context, asks: bool) -> int:
        with suppress(ConnectionError):
            ctx.step("charge", charge, "charge")
        with suppress(StepFailed):
            ctx.step("book", charge, "book", retry=Retry(attempts=1))
        return len(ran) if not asks or ctx.confirm("pay", "Pay in cash?") else 0

    player = Player(server_of(pay))
    assert player.call("pay", {"asks": False}).structured == 2
    assert player.call("pay", {"asks": True}).answer(pay=True).structured == 5
    assert ran == ["charge", "book"] * 2 + ["charge"]
    again = [fields["steps"] for event, fields in player.observer.events if event == "step_runs_again"]
    assert again == [["charge"]]
