"""Refused elicitations; URL elicitations: rounds poll `done`, tasks sleep between its calls."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Elicit, ElicitUrl
from mcp_roundtrip.engine.outcomes import Done, NeedsInput, Outcome, Sleeping, TaskRequested
from mcp_roundtrip.errors import ElicitationCancelled, ElicitationDeclined
from mcp_roundtrip_testing.task_table import FakeClock
from support.passes import AsyncPasses, Passes, TaskJournal, asked, error

ACCEPT = {"action": "accept"}
URL = "https://x.test/page"


@dataclass
class Page:
    """A page that is complete from `complete_at` (seconds after the start); it records the times of polls.

    All polls but the first `quick` ones take `latency_s`.
    """

    complete_at: float = float("inf")
    latency_s: float = 0.0
    quick: int = field(default=0, kw_only=True)
    clock: FakeClock = field(default_factory=FakeClock)
    polls: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = self.clock.now

    def done(self) -> bool:
        self.polls.append(self.clock.now - self.began)
        self.clock.advance(self.latency_s if len(self.polls) > self.quick else 0)
        return self.polls[-1] >= self.complete_at

    async def done_async(self) -> bool:
        await asyncio.sleep(0)
        return self.done()

    def visit(self, text: str = "Go there", **options: Any) -> Callable[[Context], str]:
        """Return a tool that asks the user to visit the page."""

        def body(ctx: Context) -> str:
            ctx.elicit_url("page", text, URL, done=self.done, **options)
            return "done"

        return body


def rounds(call: Passes) -> tuple[Outcome, int]:
    """Play a client that always consents at once. Return the outcome and the number of questions."""
    outcome, questions = call(), 0
    while isinstance(outcome, NeedsInput) and questions < 100:
        questions += 1
        call.clock.advance(0.1)
        outcome = call(**dict.fromkeys(outcome.requests, ACCEPT))
    return outcome, questions


@pytest.mark.parametrize(
    ("action", "kind"), [("decline", ElicitationDeclined), ("cancel", ElicitationCancelled)]
)
@pytest.mark.parametrize("question", [lambda ctx: ctx.elicit("page", "Where?", str), Page().visit()])
def test_a_tool_can_tell_whether_the_user_declined_or_dismissed_a_question(question, action, kind):
    refused = Passes(question).begun()(page={"action": action})
    assert error(refused, kind).key == "page"


@settings(max_examples=50)
@given(
    complete_at=st.floats(0, 220),
    latency_s=st.floats(0, 5),
    interval_ms=st.integers(1_000, 20_000),
    remaining_ms=st.integers(5_000, 29_000),
)
def test_no_round_exceeds_its_time_and_polls_are_rare(complete_at, latency_s, interval_ms, remaining_ms):
    page = Page(complete_at, latency_s)
    call = Passes(
        page.visit(poll_interval_ms=interval_ms), clock=page.clock, remaining_ms=remaining_ms
    ).begun()
    for number in range(1, 500):
        began = page.clock.now
        outcome = call(page=ACCEPT)
        assert page.clock.now - began <= max(remaining_ms / 1000 - 1, latency_s) + 0.001
        elapsed_ms = (page.clock.now - page.began) * 1000
        assert len(page.polls) <= elapsed_ms / interval_ms + number + 7, "7 polls in the first seconds"
        if isinstance(outcome, Done):
            break
    assert outcome == Done("done")


def test_a_page_that_has_become_slow_is_not_asked_at_the_end_of_a_round():
    page = Page(latency_s=20, quick=2)
    asked(Passes(page.visit(), clock=page.clock, remaining_ms=29_000).begun()(page=ACCEPT))
    assert page.polls == [0, 0.25, 0.75]


def test_a_call_of_a_model_does_not_wait_longer_than_clients_do():
    page = Page()
    asked(Passes(page.visit(), {}, fallbacks=("page",), clock=page.clock).begun()(page=ACCEPT))
    assert page.polls == [0, 2], "after poll_interval_ms"
    assert page.clock.now - page.began < 5


def test_done_is_called_at_most_once_a_second():
    page = Page(complete_at=200)
    outcome, questions = rounds(Passes(page.visit(), clock=page.clock))
    assert outcome == Done("done")
    assert questions == 7
    assert page.polls[:3] == [pytest.approx(each, abs=0.2) for each in (0.1, 0.35, 0.85)]
    assert len(page.polls) <= page.polls[-1] * 0.6


@pytest.mark.parametrize("may_start_task", [False, True])
def test_without_polling_done_is_called_once_per_round_and_no_task_starts(may_start_task):
    page = Page(complete_at=20)
    visit = page.visit(poll_interval_ms=None)
    call = Passes(visit, clock=page.clock, may_start_task=may_start_task).begun()
    asked(call(page=ACCEPT))
    assert page.polls == [0]
    page.clock.advance(20)
    assert call(page=ACCEPT) == Done("done")


def test_a_call_that_can_become_a_task_polls_in_the_task_which_asks_its_other_questions():
    questions = Elicit("size", "How large?", int), ElicitUrl("page", "Go", URL, bool)
    call = Passes(lambda ctx: ctx.ask(*questions), may_start_task=True).begun()
    assert isinstance(call(page=ACCEPT), TaskRequested)


@pytest.mark.parametrize(("interval_ms", "remaining_ms"), [(600_000, 30_000), (2_000, 1)])
def test_a_task_sleeps_until_the_next_poll(interval_ms, remaining_ms):
    page = Page()
    visit = page.visit(poll_interval_ms=interval_ms)
    call = Passes(visit, clock=page.clock, remaining_ms=remaining_ms, recorder=TaskJournal()).begun()
    assert call.next_in_task(page=ACCEPT) == Sleeping(int(page.clock.now * 1000) + interval_ms)


def test_a_round_does_not_wait_for_a_linked_page_while_the_client_has_a_question():
    page, forms = Page(), {"elicitation": {"form": {}}}

    def body(ctx: Context) -> None:
        ctx.ask(Elicit("size", "How large?", int), ElicitUrl("page", "Go", URL, page.done))

    call = Passes(body, forms, fallbacks=("page",), clock=page.clock).begun()
    assert asked(call(page=ACCEPT)).keys() == {"size"}
    assert page.polls == [0]


@pytest.mark.parametrize("interval_ms", [0, 999, -1, "2000", True, 1500.5, float("inf"), float("nan")])
def test_an_invalid_interval_is_refused_with_the_remedy(interval_ms):
    with pytest.raises(DefinitionError, match=r"'page'.*poll_interval_ms.*1000.*None"):
        ElicitUrl("page", "Go", URL, done=bool, poll_interval_ms=interval_ms)


@pytest.mark.parametrize(
    "url",
    [
        "example.com",
        "javascript:pay()",
        "https:///pay",
        "https://:443",
        *(f"{URL}{each}" for each in ' %\\"<>{|}^`\x00\x7f\ud800'),
    ],
)
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(DefinitionError, match="not a URL"):
        ElicitUrl("page", "Go", url, done=bool)


def test_a_url_is_sent_in_ascii():
    assert ElicitUrl("page", "Go", f"{URL}/é", done=bool).params()["url"] == f"{URL}/%C3%A9"


def test_several_pages_are_polled_together_each_at_its_own_interval():
    clock = FakeClock()
    early, often, seldom = Page(2, clock=clock), Page(20, clock=clock), Page(40, clock=clock)

    def body(ctx: Context) -> str:
        ctx.ask(
            ElicitUrl("early", "Go", URL, early.done),
            ElicitUrl("often", "Go", URL, often.done, poll_interval_ms=1_000),
            ElicitUrl("seldom", "Go", URL, seldom.done, poll_interval_ms=8_000),
        )
        return "done"

    assert rounds(Passes(body, clock=clock))[0] == Done("done")
    assert early.polls[-1] < 5
    assert len(early.polls) < len(often.polls) < len(seldom.polls) < 12


def test_an_async_tool_accepts_a_sync_and_an_async_done():
    for done in (Page.done, Page.done_async):
        page = Page(complete_at=3)

        async def body(ctx: AsyncContext, page: Page = page, done: Any = done) -> None:
            await ctx.elicit_url("page", "Go", URL, done=lambda: done(page))

        assert rounds(AsyncPasses(body, clock=page.clock)) == (Done(None), 1)


@pytest.mark.parametrize("ask", [lambda ctx: ctx.confirm("sure", "?"), lambda ctx: ctx.step("look", bool)])
def test_a_done_that_uses_the_context_is_refused(ask):
    async def body(ctx: AsyncContext) -> None:
        await ctx.elicit_url("page", "Go", URL, done=lambda: ask(ctx))

    call = AsyncPasses(body)
    asked(call())
    assert re.search("'page' uses", str(error(call(page=ACCEPT))))
