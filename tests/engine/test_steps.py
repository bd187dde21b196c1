"""Steps and other effects run once and have the same value in every pass."""

import itertools
import json
import math
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import (
    AsyncContext,
    Context,
    Drift,
    Retry,
    StepFailed,
    StepInterrupted,
    ToolError,
    UsageError,
)
from mcp_roundtrip.engine.outcomes import Checkpointed, Done, NeedsInput, OwnershipLost, Sleeping
from mcp_roundtrip.internal_errors import LeaseLost
from support.passes import AsyncPasses, Passes, TaskJournal, accept, error, value


@dataclass
class Flaky:
    """A function that raises these errors in turn, then returns "ok"."""

    errors: list[Exception]
    calls: int = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "ok"

    def passes(self, retry: Retry | None, **options: Any) -> Passes:
        """Return the passes of a tool that runs this function as a step."""
        return Passes(lambda ctx: ctx.step("work", self, retry=retry), **options)


def test_a_step_result_is_the_same_in_the_first_run_and_in_a_replay():
    def pair() -> tuple[int, float]:
        return (1, 2.0)

    def untyped():  # type: ignore[no-untyped-def]  # an author's function without annotations
        return (1, {"a": (2,)})

    seen: list[Any] = []

    def body(ctx: Context) -> None:
        seen.append([ctx.step("pair", pair), ctx.step("untyped", untyped)])
        ctx.elicit("q", "?", bool)

    call = Passes(body).begun()
    call()
    assert seen[0] == seen[1] == [(1, 2.0), [1, {"a": [2]}]]
    assert [type(value) for value in seen[0]] == [type(value) for value in seen[1]]


def test_a_journaled_result_that_violates_a_new_annotation_is_drift():
    def old() -> str:
        return "x"

    def new() -> int:
        return 1

    call = Passes(lambda ctx: [ctx.step("s", old), ctx.elicit("q", "?", bool)]).begun()
    assert error(call.on(lambda ctx: ctx.step("s", new))(), Drift).key == "s"


def test_the_error_about_a_result_without_an_annotation_names_the_part_that_json_would_change():
    call = Passes(lambda ctx: ctx.step("s", lambda: {"due": date(2026, 7, 28)}))
    assert "result.due becomes str" in str(error(call(), UsageError))


def test_time_uuid_and_random_are_the_same_in_every_pass():
    seen: list[Any] = []

    def body(ctx: Context) -> None:
        seen.append([ctx.now("t"), ctx.uuid("u"), ctx.random("r"), ctx.idempotency_key("k")])
        ctx.elicit("q", "?", bool)

    call = Passes(body).begun()
    call.clock.advance(60)
    call()
    assert seen[0] == seen[1]
    assert 0 <= seen[0][2] < 1
    assert seen[0][1].version == 4


def test_mutating_a_step_result_does_not_change_the_journal():
    def names():  # type: ignore[no-untyped-def]  # an author's function without annotations
        return ["a", "b"]

    def body(ctx: Context) -> str:
        left = ctx.step("names", names)
        first = left.pop(0)
        ctx.elicit("ok", f"Delete {first}?", bool)
        ctx.elicit("sure", f"Is {first} the right one?", bool)
        return str(first)

    call = Passes(body).begun()
    call(ok=accept(True))  # this pass changes a replayed result
    assert call(sure=accept(True)) == Done("a")


def test_a_step_whose_result_type_has_no_json_form_is_refused_before_it_runs():
    ran: list[int] = []

    def effect() -> Passes:
        ran.append(1)
        return Passes(print)

    assert error(Passes(lambda ctx: ctx.step("s", effect))(), UsageError)
    assert ran == []


def test_a_nonrepeatable_step_of_a_task_may_have_no_retry():
    call = Passes(lambda ctx: ctx.step("s", str, at_most_once=True, retry=Retry()), recorder=TaskJournal())
    assert error(call(), UsageError)


def test_a_result_with_more_levels_than_json_may_have_is_a_usage_error():
    allowed, deeper = (json.loads("[" * levels + "]" * levels) for levels in (64, 65))
    assert value(Passes(lambda ctx: ctx.step("s", lambda: allowed))()) == allowed
    assert error(Passes(lambda ctx: ctx.step("s", lambda: deeper))(), UsageError)


def test_a_step_that_failed_its_last_attempt_never_runs_again():
    work = Flaky([ConnectionError(str(number)) for number in range(9)])
    attempts = iter([3, 5])  # the second build allows more

    def body(ctx: Context) -> str:
        try:
            return ctx.step("work", work, retry=Retry(attempts=next(attempts)))
        except StepFailed as failed:
            return f"{failed.key} {ctx.elicit('other', 'Another?', str)}"

    call = Passes(body).begun()
    assert work.calls == 3
    assert [(step, str(failure), again) for step, failure, again in call.failed_steps] == [
        ("work", "0", True),
        ("work", "1", True),
        ("work", "2", False),
    ]
    assert call(other=accept("paper")) == Done("work paper")
    assert work.calls == 3


def test_a_step_does_not_run_again_in_a_build_that_allows_fewer_attempts():
    work = Flaky([ConnectionError(str(number)) for number in range(9)])

    call = work.passes(Retry(attempts=3, delay_ms=60_000), recorder=TaskJournal())
    assert isinstance(call(), Sleeping)
    call.clock.advance(60)
    for fewer in (Retry(attempts=1), None):
        assert error(call.on(work.passes(fewer).body).next_in_task(), StepFailed)
    assert work.calls == 1


@pytest.mark.parametrize(
    ("failure", "retry"),
    [
        (ValueError(), Retry(on=(OSError,))),
        (ToolError("no"), Retry()),
        (ToolError("no"), Retry(on=(ToolError,))),
        (ConnectionError(), None),
    ],
)
def test_an_error_outside_the_retry_policy_is_raised_at_once(failure, retry):
    work = Flaky([failure])
    assert error(work.passes(retry)()) is failure
    assert work.calls == 1


@pytest.mark.parametrize("options", [{"at_most_once": True}, {}, {"retry": Retry()}], ids=str)
def test_a_failed_nonrepeatable_step_does_not_run_again_also_not_in_a_build_that_repeats_it(options):
    work = Flaky([ConnectionError("dead")])
    call = Passes(lambda ctx: ctx.step("pay", work, at_most_once=True), recorder=TaskJournal())
    assert error(call(), StepInterrupted)
    assert [(step, str(cause), again) for step, cause, again in call.failed_steps] == [("pay", "dead", False)]
    later = call.on(lambda ctx: ctx.step("pay", work, **options))
    assert error(later.next_in_task(), StepInterrupted).key == "pay"
    assert work.calls == 1


def test_a_result_of_an_at_most_once_step_is_not_recorded_after_the_end_of_its_task():
    journal = TaskJournal()

    def pay() -> None:
        journal.is_cancelled = True

    call = Passes(lambda ctx: ctx.step("pay", pay, at_most_once=True), recorder=journal)
    assert error(call(), LeaseLost)
    assert list(journal.entries) == ["pay~begun"]


def test_of_two_workers_that_begin_a_nonrepeatable_step_at_once_one_runs_it():
    work, records = Flaky([]), TaskJournal()
    first, second = (
        Passes(lambda ctx: ctx.step("work", work, at_most_once=True), recorder=records) for _ in range(2)
    )
    second._random = itertools.count(1_000)
    assert first() == Done("ok")
    assert isinstance(error(second()), StepInterrupted), "its journal is that before the first one began"
    assert work.calls == 1


def test_of_two_workers_that_run_a_step_both_return_the_result_of_the_first():
    results, records = iter("ab"), TaskJournal()
    workers = [Passes(lambda ctx: ctx.step("s", lambda: next(results)), recorder=records) for _ in range(2)]
    assert [worker() for worker in workers] == [Done("a")] * 2
    assert next(results, None) is None


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"delay_ms": -1}, {"factor": 0.5}, {"max_delay_ms": -1}], ids=str
)
def test_an_invalid_policy_is_refused(wrong):
    with pytest.raises(UsageError):
        Retry(**wrong)


@given(
    st.integers(0, 10_000),
    st.floats(1, 5),
    st.integers(0, 100_000),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 2_000),
)
def test_jitter_shortens_a_delay_by_at_most_half(delay_ms, factor, max_delay_ms, random, failures):
    retry = Retry(delay_ms=delay_ms, factor=factor, max_delay_ms=max_delay_ms)
    growth = math.exp(min((failures - 1) * math.log(factor), 50))
    longest = min(delay_ms * growth, max_delay_ms)
    assert longest / 2 - 2 < retry.pause_ms(failures, random) <= longest + 1


def test_a_round_waits_and_returns_its_state_before_its_deadline():
    work = Flaky([ConnectionError()])
    call = work.passes(Retry(delay_ms=40_000), remaining_ms=13_000)
    begun = call.clock.now
    passes = 0
    while isinstance(outcome := call(), Checkpointed):
        passes += 1
        assert call.clock.now - begun <= passes * 10
    assert outcome == Done("ok")
    assert passes in (2, 3)
    assert 20 <= call.clock.now - begun <= 40
    assert work.calls == 2


def test_attempts_are_counted_across_rounds_and_the_last_error_is_the_cause_of_the_failed_step():
    work = Flaky([ConnectionError(str(number)) for number in range(9)])
    call = work.passes(Retry(attempts=4, delay_ms=30_000, factor=1), remaining_ms=13_000)
    while isinstance(outcome := call(), Checkpointed):
        continue
    assert str(error(outcome, StepFailed).__cause__) == "3"
    assert work.calls == 4


def test_a_cancelled_task_is_not_retried():
    records = TaskJournal()

    def work() -> str:
        records.is_cancelled = True
        raise ConnectionError

    call = Passes(lambda ctx: ctx.step("work", work, retry=Retry()), recorder=records)
    assert call() == OwnershipLost()


def test_a_branch_waiting_for_a_retry_does_not_block_others():
    done: list[str] = []
    records = TaskJournal()

    async def flaky(ctx: AsyncContext) -> Any:
        return await ctx.step("work", Flaky([ConnectionError()]), retry=Retry(delay_ms=60_000))

    async def steady(ctx: AsyncContext) -> None:
        await ctx.step("work", lambda: done.append("steady"))

    async def body(ctx: AsyncContext) -> None:
        await ctx.gather({"flaky": flaky, "steady": steady})

    assert isinstance(AsyncPasses(body, recorder=records)(), Sleeping)
    assert done == ["steady"]
    assert records.entries.keys() >= {"steady/work", "flaky/work~failed1"}


def test_a_task_sleeps_until_the_earliest_wake_up_of_its_branches():
    async def body(ctx: AsyncContext) -> None:
        await ctx.gather(
            {
                "short": lambda branch: branch.sleep("nap", 60_000),
                "long": lambda branch: branch.sleep("nap", 90_000),
            }
        )

    call = AsyncPasses(body, recorder=TaskJournal())
    assert call() == Sleeping(int(call.clock.now * 1000) + 60_000)


def test_a_checkpointed_branch_resumes_before_questions_of_others_are_asked():
    async def long(ctx: AsyncContext) -> None:
        await ctx.step("one", int)
        await ctx.step("two", int)

    async def body(ctx: AsyncContext) -> None:
        await ctx.gather({"long": long, "asks": lambda branch: branch.elicit("q", "?", bool)})

    records = TaskJournal()
    call = AsyncPasses(body, recorder=records, remaining_ms=1)
    assert isinstance(call(), Checkpointed)
    assert isinstance(call.next_in_task(), NeedsInput)
    assert records.entries.keys() == {"long/one", "long/two"}
