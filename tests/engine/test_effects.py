"""Steps and other effects run once and have the same value in every pass."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip import Context, Drift, InvalidKey, UsageError
from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip.engine.replay import Done, NeedsInput
from support.passes import Passes, accept, error, value


def test_a_step_runs_once_across_rounds_and_returns_the_same_value() -> None:
    runs: list[int] = []

    def create() -> dict[str, int]:
        runs.append(1)
        return {"id": len(runs)}

    def body(ctx: Context) -> Any:
        created = ctx.step("create", create)
        ctx.elicit("keep", "Keep?", bool)
        return created

    call = Passes(body)
    call()
    assert call(keep=accept(True)) == Done({"id": 1})
    assert runs == [1]


def test_a_step_result_is_the_same_in_the_first_run_and_in_a_replay() -> None:
    def pair() -> tuple[int, float]:
        return (1, 2.0)

    def untyped():  # type: ignore[no-untyped-def]  # an author's function without annotations
        return (1, {"a": (2,)})

    seen: list[Any] = []

    def body(ctx: Context) -> None:
        seen.append([ctx.step("pair", pair), ctx.step("untyped", untyped)])
        ctx.elicit("q", "?", bool)

    call = Passes(body)
    call()
    call()
    assert seen[0] == seen[1] == [(1, 2.0), [1, {"a": [2]}]]
    assert [type(value) for value in seen[0]] == [type(value) for value in seen[1]]


def test_a_step_that_raises_is_not_journaled() -> None:
    attempts: list[int] = []

    def flaky() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError
        return "ok"

    def body(ctx: Context) -> str:
        try:
            first = ctx.step("flaky", flaky)
        except ConnectionError:
            first = "failed"
        ctx.elicit("q", "?", bool)
        return first

    call = Passes(body)
    call()
    assert call(q=accept(True)) == Done("ok")


def test_a_journaled_result_that_violates_a_new_annotation_is_drift() -> None:
    def old() -> str:
        return "x"

    def new() -> int:
        return 1

    call = Passes(lambda ctx: [ctx.step("s", old), ctx.elicit("q", "?", bool)])
    call()
    assert error(call.on(lambda ctx: ctx.step("s", new))(), Drift).key == "s"


def test_time_uuid_and_random_are_the_same_in_every_pass() -> None:
    seen: list[Any] = []

    def body(ctx: Context) -> None:
        seen.append([ctx.now("t"), ctx.uuid("u"), ctx.random("r"), ctx.idempotency_key("k")])
        ctx.elicit("q", "?", bool)

    call = Passes(body)
    call()
    call.clock.advance(60)
    call()
    assert seen[0] == seen[1]
    assert 0 <= seen[0][2] < 1
    assert seen[0][1].version == 4


def test_idempotency_keys_differ_by_name() -> None:
    one, other = value(Passes(lambda ctx: [ctx.idempotency_key("a"), ctx.idempotency_key("b")])())
    assert one != other
    assert len(one) == 32


def test_the_kinds_of_entries_have_stable_names() -> None:
    def body(ctx: Context) -> None:
        ctx.step("s", int)
        ctx.now("n")
        ctx.uuid("u")
        ctx.random("r")
        ctx.elicit("q", "?", bool)

    outcome = Passes(body)()
    assert isinstance(outcome, NeedsInput)
    kinds = [entry.kind for entry in outcome.journal.entries]
    assert kinds == [Kind.STEP, Kind.NOW, Kind.UUID, Kind.RANDOM]


def test_mutating_a_step_result_does_not_change_the_journal() -> None:
    def names():  # type: ignore[no-untyped-def]  # an author's function without annotations
        return ["a", "b"]

    def body(ctx: Context) -> str:
        left = ctx.step("names", names)
        first = left.pop(0)
        ctx.elicit("ok", f"Delete {first}?", bool)
        return str(first)

    call = Passes(body)
    call()
    assert call(ok=accept(True)) == Done("a")


class Opaque:
    """A value that JSON cannot express."""


def test_a_step_whose_result_type_has_no_json_form_is_refused_before_it_runs() -> None:
    ran: list[int] = []

    def effect() -> Opaque:
        ran.append(1)
        return Opaque()

    assert isinstance(error(Passes(lambda ctx: ctx.step("s", effect))()), UsageError)
    assert ran == []


def test_a_result_that_violates_its_annotation_is_a_usage_error_and_not_drift() -> None:
    def pairs() -> dict[tuple[int, int], str]:
        return {(1, 2): "x"}

    assert isinstance(error(Passes(lambda ctx: ctx.step("s", pairs))()), UsageError)


def test_a_result_nested_too_deeply_is_refused_when_it_is_returned() -> None:
    def deep():  # type: ignore[no-untyped-def]  # an author's function without annotations
        value: list[Any] = []
        for _ in range(100):
            value = [value]
        return value

    assert isinstance(error(Passes(lambda ctx: ctx.step("s", deep))()), UsageError)


@pytest.mark.parametrize("name", ["", "a/b", "~"])
def test_names_of_idempotency_keys_follow_the_rules_for_keys(name: str) -> None:
    assert isinstance(error(Passes(lambda ctx: ctx.idempotency_key(name))()), InvalidKey)
