"""URL elicitations: rounds poll `done`, tasks sleep between its calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Elicit, ElicitUrl
from mcp_roundtrip.engine.journal import Entry, Journal
from mcp_roundtrip.engine.outcome import Done, Failed, NeedsInput, Outcome, Sleeping, TaskRequested
from mcp_roundtrip_testing.clock import FakeClock
from support.passes import AsyncPasses, Passes, accept, asked, error

ACCEPT = {"action": "accept"}
URL = "https://x.test/page"


@dataclass
class Page:
    """Is complete from a time on (seconds after the test's begin); remembers when it was looked at."""

    complete_at: float = float("inf")
    takes_s: float = 0.0
    clock: FakeClock = field(default_factory=FakeClock)
    looks: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = self.clock.now

    def done(self) -> bool:
        self.looks.append(self.clock.now - self.began)
        self.clock.advance(self.takes_s)
        return self.looks[-1] >= self.complete_at

    async def done_async(self) -> bool:
        await asyncio.sleep(0)
        return self.done()


def visiting(page: Page, **options: Any) -> Callable[[Context], str]:
    def body(ctx: Context) -> str:
        ctx.elicit_url("page", "Go there", URL, done=page.done, **options)
        return "done"

    return body


def rounds(call: Passes, most: int = 100) -> tuple[Outcome, int]:
    """A client that agrees at once, again and again: how the call ends, and after how many questions."""
    outcome, questions = call(), 0
    while isinstance(outcome, NeedsInput) and questions < most:
        questions += 1
        call.clock.advance(0.1)
        outcome = call(**dict.fromkeys(outcome.requests, ACCEPT))
    return outcome, questions


# -- in rounds ------------------------------------------------------------------------------------------


def test_a_page_that_is_completed_during_the_round_ends_it() -> None:
    page = Page(complete_at=3)
    assert rounds(Passes(visiting(page), clock=page.clock)) == (Done("done"), 1)
    assert 3 <= page.looks[-1] < 6


def test_a_page_that_is_not_completed_in_time_is_asked_for_again_unchanged() -> None:
    page = Page()
    call = Passes(visiting(page), clock=page.clock)
    first = asked(call())
    assert asked(call(page=ACCEPT)) == first
    assert call.journal is not None
    assert call.journal.entries == ()
    assert 26 <= page.looks[-1] <= 29, "the round's 30 s less the reserve"


@settings(max_examples=50)
@given(
    complete_at=st.floats(0, 220),
    takes_s=st.floats(0, 5),
    interval_ms=st.integers(1_000, 20_000),
    remaining_ms=st.integers(5_000, 29_000),
)
def test_no_round_is_longer_than_its_time_and_looks_are_rare(
    complete_at: float, takes_s: float, interval_ms: int, remaining_ms: int
) -> None:
    page = Page(complete_at, takes_s)
    call = Passes(visiting(page, poll_interval_ms=interval_ms), clock=page.clock, remaining_ms=remaining_ms)
    call()
    for number in range(1, 500):
        began = page.clock.now
        outcome = call(page=ACCEPT)
        assert page.clock.now - began <= max(remaining_ms / 1000, takes_s) + 0.001
        elapsed_ms = (page.clock.now - page.began) * 1000
        assert len(page.looks) <= elapsed_ms / interval_ms + number + 7, "7 are those of the first seconds"
        if isinstance(outcome, Done):
            break
    assert outcome == Done("done")


def test_looks_cost_at_most_one_call_a_second() -> None:
    page = Page(complete_at=200)
    outcome, questions = rounds(Passes(visiting(page), clock=page.clock))
    assert outcome == Done("done")
    assert questions == 7
    assert page.looks[:3] == [pytest.approx(each, abs=0.2) for each in (0.1, 0.35, 0.85)]
    assert len(page.looks) <= page.looks[-1] * 0.6


def test_a_round_that_may_last_longer_than_clients_wait_asks_again_before() -> None:
    page = Page()
    call = Passes(visiting(page), clock=page.clock, remaining_ms=900_000)
    call()
    began = page.clock.now
    call(page=ACCEPT)
    assert 30 <= page.clock.now - began <= 45


def test_a_slow_done_is_not_begun_where_it_would_outlast_the_round() -> None:
    page = Page(takes_s=5)
    call = Passes(visiting(page), clock=page.clock)
    call()
    began = page.clock.now
    asked(call(page=ACCEPT))
    assert page.clock.now - began <= 29


def test_an_author_who_cannot_be_polled_is_asked_once_in_each_round() -> None:
    page = Page(complete_at=20)
    call = Passes(visiting(page, poll_interval_ms=None), clock=page.clock)
    call()
    asked(call(page=ACCEPT))
    assert page.looks == [0]
    page.clock.advance(20)
    assert call(page=ACCEPT) == Done("done")


@pytest.mark.parametrize("interval_ms", [0, 999, -1, "2000", True, 1500.5, float("inf"), float("nan")])
def test_an_interval_that_is_too_short_or_no_number_is_refused_with_what_to_write(interval_ms: Any) -> None:
    with pytest.raises(DefinitionError, match=r"'page'.*poll_interval_ms.*1000.*None"):
        ElicitUrl("page", "Go", URL, done=bool, poll_interval_ms=interval_ms)


def test_a_round_counts_as_waiting_while_nothing_else_is_asked() -> None:
    page = Page()

    def body(ctx: Context) -> str:
        name, _ = ctx.ask(Elicit("name", "Who?", str), ElicitUrl("page", "Go", URL, page.done))
        return str(name)

    call = Passes(body, clock=page.clock)
    call()
    assert call.journal is not None
    outcome = call(page=ACCEPT)
    assert asked(outcome).keys() == {"name", "page"}
    assert isinstance(outcome, NeedsInput)
    assert call.journal.url_wait_rounds == 0
    assert page.looks == [0], "the URL is not polled while the form is outstanding"
    outcome = call(name=accept("Ada"), page=ACCEPT)
    assert isinstance(outcome, NeedsInput)
    assert (outcome.requests.keys(), call.journal.url_wait_rounds) == ({"page"}, 1)


def test_several_pages_are_waited_for_together() -> None:
    clock = FakeClock()
    early, late = Page(2, clock=clock), Page(9, clock=clock)

    def body(ctx: Context) -> str:
        ctx.ask(ElicitUrl("early", "Go", URL, early.done), ElicitUrl("late", "Go", URL, late.done))
        return "done"

    assert rounds(Passes(body, clock=clock)) == (Done("done"), 1)
    assert early.looks[-1] < 5


def test_of_several_pages_none_is_polled_more_often_than_its_author_says() -> None:
    clock = FakeClock()
    often, seldom = Page(20, clock=clock), Page(40, clock=clock)

    def body(ctx: Context) -> str:
        ctx.ask(
            ElicitUrl("often", "Go", URL, often.done, poll_interval_ms=1_000),
            ElicitUrl("seldom", "Go", URL, seldom.done, poll_interval_ms=8_000),
        )
        return "done"

    assert rounds(Passes(body, clock=clock))[0] == Done("done")
    assert len(often.looks) < len(seldom.looks) < 12


def test_an_error_of_done_reaches_the_tool() -> None:
    looks: list[bool] = []

    def done() -> bool:
        looks.append(True)
        if len(looks) > 2:
            raise ConnectionError("gone")
        return False

    call = Passes(lambda ctx: ctx.elicit_url("page", "Go", URL, done=done))
    call()
    assert isinstance(error(call(page=ACCEPT)), ConnectionError)


def test_a_done_that_raises_stop_iteration_ends_no_question() -> None:
    looks = iter([False])
    call = Passes(lambda ctx: ctx.elicit_url("page", "Go", URL, done=lambda: next(looks)))
    call()
    assert isinstance(call(page=ACCEPT), Failed)


def test_a_state_of_before_pages_were_waited_for_is_read() -> None:
    assert Journal.from_json({"v": 1, "id": "x"}).url_wait_rounds == 0
    assert Journal.from_json(Journal("x", url_wait_rounds=3).to_json()).url_wait_rounds == 3


# -- beside other branches ------------------------------------------------------------------------------


def test_an_async_tool_waits_with_a_done_of_either_kind() -> None:
    pages = Page(complete_at=3), Page(complete_at=3)

    async def plain(ctx: AsyncContext) -> None:
        await ctx.elicit_url("page", "Go", URL, done=pages[0].done)

    async def coroutine(ctx: AsyncContext) -> None:
        await ctx.elicit_url("page", "Go", URL, done=pages[1].done_async)

    for body, page in zip((plain, coroutine), pages, strict=True):
        assert rounds(AsyncPasses(body, clock=page.clock)) == (Done(None), 1)


@pytest.mark.parametrize("ask", [lambda ctx: ctx.confirm("sure", "?"), lambda ctx: ctx.step("look", bool)])
def test_a_done_that_uses_the_context_is_refused(ask: Callable[[AsyncContext], Any]) -> None:
    async def body(ctx: AsyncContext) -> None:
        await ctx.elicit_url("page", "Go", URL, done=lambda: ask(ctx))

    call = AsyncPasses(body)
    asked(call())
    assert re.search("'page'.*done= uses the context", str(error(call(page=ACCEPT))))


def test_a_page_is_waited_for_while_other_branches_work() -> None:
    page, order = Page(complete_at=3), list[str]()

    async def body(ctx: AsyncContext) -> str:
        async def visit(branch: AsyncContext) -> None:
            await branch.elicit_url("page", "Go", URL, done=page.done)
            order.append("visited")

        async def work(branch: AsyncContext) -> None:
            for number in range(3):
                await branch.step(f"step {number}", asyncio.sleep, 0)
            order.append("worked")

        await ctx.gather({"a": visit, "b": work})
        return "done"

    assert rounds(AsyncPasses(body, clock=page.clock)) == (Done("done"), 1)
    assert order == ["worked", "worked", "visited"]


def test_what_another_branch_asks_is_not_held_back_by_a_page() -> None:
    page = Page()

    async def body(ctx: AsyncContext) -> str:
        async def visit(branch: AsyncContext) -> None:
            await branch.elicit_url("page", "Go", URL, done=page.done)

        async def name(branch: AsyncContext) -> str:
            first = await branch.elicit("first", "First name?", str)
            return f"{first} {await branch.elicit('last', 'Last name?', str)}"

        return str((await ctx.gather({"a": visit, "b": name}))["b"])

    call = AsyncPasses(body, clock=page.clock)
    assert asked(call()).keys() == {"a/page", "b/first"}
    outcome = call(**{"a/page": ACCEPT, "b/first": accept("Ada")})
    assert asked(outcome).keys() == {"a/page", "b/last"}
    assert len(page.looks) < 4
    page.complete_at = 0
    assert call(**{"a/page": ACCEPT, "b/last": accept("Lovelace")}) == Done("Ada Lovelace")


# -- in tasks -------------------------------------------------------------------------------------------


def test_a_call_that_can_become_a_task_waits_there_and_takes_the_consent_along() -> None:
    page = Page()
    call = Passes(visiting(page), clock=page.clock, may_start_task=True)
    asked(call())
    outcome = call(page=ACCEPT)
    assert isinstance(outcome, TaskRequested)
    assert outcome.journal.unused_responses == {"page": ACCEPT}
    assert outcome.journal.outstanding.keys() == {"page"}
    assert page.looks == [0]


def test_a_page_that_cannot_be_polled_makes_no_task() -> None:
    page = Page()
    call = Passes(visiting(page, poll_interval_ms=None), clock=page.clock, may_start_task=True)
    asked(call())
    assert asked(call(page=ACCEPT)).keys() == {"page"}


@dataclass
class Records:
    """The journal of a task, which its passes have in common."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def record(self, entry: Entry) -> Entry:
        return self.entries.setdefault(entry.key, entry)

    def holds_lease(self) -> bool:
        return True


def test_a_task_sleeps_longer_and_longer_until_the_page_is_complete() -> None:
    page, records = Page(complete_at=1_000), Records()
    call = Passes(visiting(page), clock=page.clock, recorder=records, remaining_ms=800_000)
    asked(call())
    assert call.journal is not None
    fingerprints, slept = call.journal.outstanding, []
    while True:
        call.journal = Journal("run-1", tuple(records.entries.values()), fingerprints)
        outcome = call(page=ACCEPT)
        if not isinstance(outcome, Sleeping):
            break
        slept.append(outcome.wake_at_ms / 1000 - page.clock.now)
        page.clock.advance(slept[-1] + 0.001)
    assert outcome == Done("done")
    assert page.clock.now - page.began < 1_061
    assert slept == sorted(slept)
    assert slept[-1] <= 60
    assert len(page.looks) < 40


def test_an_opened_page_in_a_task_may_still_change_its_question() -> None:
    page, records = Page(), Records()
    texts = ["Go there", "Please go there"]

    def body(ctx: Context) -> None:
        ctx.elicit_url("page", texts[0], URL, done=page.done)

    call = Passes(body, clock=page.clock, recorder=records)
    asked(call())
    assert isinstance(call(page=ACCEPT), Sleeping)
    texts.pop(0)
    assert call.journal is not None
    call.journal = Journal("run-1", tuple(records.entries.values()), call.journal.outstanding)
    assert asked(call(page=ACCEPT))["page"]["params"]["message"] == "Please go there"


# -- references -----------------------------------------------------------------------------------------


def test_a_reference_is_the_same_in_equal_calls_and_an_idempotency_key_is_not() -> None:
    def body(ctx: Context) -> list[str]:
        return [ctx.reference("approval"), ctx.reference("other"), ctx.idempotency_key("approval")]

    first, second = Passes(body), Passes(body)
    second.journal = Journal("run-2")
    [one, other] = [outcome.value for outcome in (first(), second()) if isinstance(outcome, Done)]
    assert one[:2] == other[:2]
    assert len({*one, *other}) == 4
    assert all(len(each) == 32 for each in one)


def test_a_reference_belongs_only_to_the_answers_before_it() -> None:
    def body(ctx: Context) -> str:
        amount = ctx.elicit("amount", "How much?", int)
        reference = ctx.reference("approval")
        ctx.elicit("note", f"A note for {amount}?", str)
        return reference

    def reference(amount: int, note: str) -> str:
        outcome = Passes(body)(amount=accept(amount), note=accept(note))
        assert isinstance(outcome, Done)
        return str(outcome.value)

    assert reference(5, "a") == reference(5, "b") != reference(5_000, "a")


def test_anonymous_callers_have_references_of_their_own() -> None:
    def references(call: Passes) -> list[str]:
        outcomes = [call(), call()]
        return [outcome.value for outcome in outcomes if isinstance(outcome, Done)]

    first = Passes(lambda ctx: ctx.reference("approval"), identity=None)
    second = Passes(lambda ctx: ctx.reference("approval"), identity=None, journal=Journal("run-2"))
    [one, again], [other, _] = references(first), references(second)
    assert one == again != other


def test_a_branchs_reference_is_not_touched_by_what_its_siblings_answered() -> None:
    async def body(ctx: AsyncContext) -> str:
        async def size(branch: AsyncContext) -> str:
            return str(await branch.elicit("size", "How large?", int))

        async def refer(branch: AsyncContext) -> str:
            await asyncio.sleep(0)
            return branch.reference("approval")

        return (await ctx.gather({"a": size, "ab": refer}))["ab"]

    small, large = (AsyncPasses(body)(**{"a/size": accept(size)}) for size in (1, 2))
    assert isinstance(small, Done)
    assert small == large
