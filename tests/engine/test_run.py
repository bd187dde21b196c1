"""The engine's rules about keys, questions and answers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp_roundtrip import (
    Context,
    Drift,
    DuplicateKey,
    Elicit,
    ElicitationCancelled,
    ElicitationDeclined,
    InvalidKey,
    ListRoots,
    MissingClientCapability,
    Sample,
    UsageError,
)
from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip.engine.outcome import Done, Failed, NeedsInput, Shed
from support.passes import Passes, accept


class Size(BaseModel):
    vcpus: int = Field(ge=1, le=16)


def asked(outcome: Any) -> dict[str, Any]:
    assert isinstance(outcome, NeedsInput), outcome
    return dict(outcome.requests)


def error(outcome: Any) -> BaseException:
    assert isinstance(outcome, Failed), outcome
    return outcome.error


def size_then_name(ctx: Context) -> str:
    size = ctx.elicit("size", "How large?", Size)
    name = ctx.elicit("name", "Which name?", str)
    return f"{name}:{size.vcpus}"


# -- the straight line ----------------------------------------------------------------------------------


def test_the_first_unanswered_question_suspends_the_run() -> None:
    assert asked(Passes(size_then_name)()) == {
        "size": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "How large?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"vcpus": {"type": "integer", "minimum": 1, "maximum": 16}},
                    "required": ["vcpus"],
                },
            },
        }
    }


def test_each_answer_carries_the_run_to_the_next_question_and_to_its_end() -> None:
    call = Passes(size_then_name)
    call()
    assert asked(call(size=accept(vcpus=4))).keys() == {"name"}
    assert call(name=accept("orders")) == Done("orders:4")


def test_a_question_left_unanswered_is_asked_again() -> None:
    call = Passes(size_then_name)
    call()
    assert asked(call()).keys() == {"size"}


def test_an_answer_nobody_asked_for_is_ignored() -> None:
    call = Passes(size_then_name)
    call()
    assert asked(call(name=accept("early"))).keys() == {"size"}
    assert asked(call(size=accept(vcpus=1))).keys() == {"name"}


def test_several_questions_share_a_round_and_come_back_in_order() -> None:
    def body(ctx: Context) -> list[Any]:
        size, name = ctx.ask(Elicit("size", "How large?", Size), Elicit("name", "Which name?", str))
        return [size.vcpus, name]

    call = Passes(body)
    assert asked(call()).keys() == {"size", "name"}
    assert asked(call(name=accept("orders"))).keys() == {"size"}
    assert call(size=accept(vcpus=2)) == Done([2, "orders"])


# -- keys -----------------------------------------------------------------------------------------------


def test_a_key_used_twice_in_one_run_is_refused_even_if_the_tool_swallows_it() -> None:
    def body(ctx: Context) -> str:
        ctx.step("one", int)
        with suppress(Exception):
            ctx.step("one", int)
        return "went on"

    failure = error(Passes(body)())
    assert isinstance(failure, DuplicateKey)
    assert failure.key == "one"


@pytest.mark.parametrize("key", ["", "a/b", "~a", 7, None])
def test_reserved_and_empty_keys_are_refused(key: Any) -> None:
    assert isinstance(error(Passes(lambda ctx: ctx.step(key, int))()), InvalidKey)


def test_a_step_may_not_use_its_context() -> None:
    def body(ctx: Context) -> int:
        return ctx.step("outer", lambda: ctx.step("inner", int))

    assert isinstance(error(Passes(body)()), UsageError)


# -- answers without a state ----------------------------------------------------------------------------


def test_an_answer_without_state_is_taken_for_questions_before_the_first_effect() -> None:
    assert Passes(size_then_name)(size=accept(vcpus=3), name=accept("n")) == Done("n:3")


def test_an_answer_without_state_is_not_taken_after_an_effect() -> None:
    def body(ctx: Context) -> bool:
        ctx.step("create", int)
        return ctx.elicit("keep", "Keep it?", bool)

    call = Passes(body)
    assert asked(call(keep=accept(True))).keys() == {"keep"}
    assert call(keep=accept(True)) == Done(True)


# -- answers that do not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        accept(vcpus=99),
        accept(vcpus="many"),
        {"action": "accept"},
        {"action": "accept", "content": []},
        {"action": "shrug"},
        {},
        [],
        "text",
        12345,
        None,
    ],
)
def test_an_answer_that_does_not_fit_is_asked_again_and_the_good_one_taken(answer: Any) -> None:
    call = Passes(lambda ctx: ctx.elicit("size", "How large?", Size).vcpus)
    call()
    again = asked(call(size=answer))["size"]["params"]["message"]
    assert again.startswith("How large?\n\n")
    assert call(size=accept(vcpus=8)) == Done(8)


def test_the_reason_for_asking_again_does_not_repeat_the_answer() -> None:
    call = Passes(lambda ctx: ctx.elicit("size", "How large?", Size).vcpus)
    call()
    assert "hunter2" not in asked(call(size=accept(vcpus="hunter2")))["size"]["params"]["message"]


@pytest.mark.parametrize(
    ("action", "kind"), [("decline", ElicitationDeclined), ("cancel", ElicitationCancelled)]
)
def test_a_refusal_is_raised_with_its_key_in_every_pass(action: str, kind: type[Exception]) -> None:
    def body(ctx: Context) -> str:
        try:
            ctx.elicit("size", "How large?", Size)
        except (ElicitationDeclined, ElicitationCancelled) as refusal:
            name = ctx.elicit("instead", "What else?", str)
            return f"{type(refusal).__name__} {refusal.key} {name}"
        return "answered"

    call = Passes(body)
    call()
    assert asked(call(size={"action": action, "content": {"ignored": 1}})).keys() == {"instead"}
    assert call(instead=accept("x")) == Done(f"{kind.__name__} size x")


# -- changed questions ----------------------------------------------------------------------------------


def asks(message: str = "Which?", model: Any = str, *, then: bool = False) -> Any:
    def body(ctx: Context) -> Any:
        answer = ctx.elicit("question", message, model)
        if then:
            ctx.step("later", int)
        ctx.elicit("last", "More?", bool)
        return answer

    return body


def test_an_answer_to_a_question_that_changed_meanwhile_is_not_taken() -> None:
    call = Passes(asks("Delete the copy?", bool))
    call()
    changed = call.on(asks("Delete the original?", bool))
    assert asked(changed(question=accept(True)))["question"]["params"]["message"] == "Delete the original?"


def test_a_changed_question_is_asked_again_while_nothing_later_is_journaled() -> None:
    call = Passes(asks("Which?"))
    call()
    call(question=accept("a"))
    changed = call.on(asks("Which one?"))
    assert asked(changed()).keys() == {"question"}
    assert asked(changed(question=accept("b"))).keys() == {"last"}
    assert changed(last=accept(True)) == Done("b")


@pytest.mark.parametrize(
    ("now", "word"), [(asks("Which one?", then=True), "message"), (asks(model=int, then=True), "form")]
)
def test_a_question_that_changed_under_later_effects_is_drift_that_names_what_changed(
    now: Any, word: str
) -> None:
    call = Passes(asks(then=True))
    call()
    call(question=accept("a"))
    failure = error(call.on(now)())
    assert isinstance(failure, Drift)
    assert failure.key == "question"
    assert word in failure.changed


def test_an_answer_that_a_new_build_finds_invalid_is_asked_again_or_drift() -> None:
    class Loose(BaseModel):
        code: str

    def strict(ctx: Context) -> Any:
        return ctx.elicit("code", "Which code?", OddLength).code

    class OddLength(BaseModel):
        code: str

        def model_post_init(self, context: Any) -> None:
            if len(self.code) % 2 == 0:
                raise ValueError("must have an odd length")

    call = Passes(lambda ctx: [ctx.elicit("code", "Which code?", Loose).code, ctx.elicit("b", "B?", str)])
    call()
    call(code=accept(code="ab"))
    assert asked(call.on(strict)()).keys() == {"code"}


def test_a_step_that_became_a_question_is_drift() -> None:
    call = Passes(lambda ctx: [ctx.step("x", int), ctx.elicit("q", "?", bool)])
    call()
    failure = error(call.on(lambda ctx: ctx.elicit("x", "?", bool))())
    assert isinstance(failure, Drift)
    assert failure.key == "x"


def test_a_question_that_became_a_step_is_drift() -> None:
    call = Passes(lambda ctx: [ctx.elicit("x", "?", bool), ctx.elicit("y", "?", bool)])
    call()
    call(x=accept(True))
    assert isinstance(error(call.on(lambda ctx: ctx.step("x", int))()), Drift)


def test_drift_decides_the_outcome_even_if_the_tool_swallows_it() -> None:
    def swallowing(ctx: Context) -> str:
        with suppress(Exception):
            ctx.elicit("x", "?", bool)
        return "went on"

    call = Passes(lambda ctx: [ctx.step("x", int), ctx.elicit("q", "?", bool)])
    call()
    assert isinstance(error(call.on(swallowing)()), Drift)


def test_an_inserted_and_a_removed_step_are_tolerated() -> None:
    ran: list[str] = []

    def step(ctx: Context, name: str) -> None:
        ctx.step(name, lambda: ran.append(name))

    def old(ctx: Context) -> None:
        step(ctx, "removed")
        step(ctx, "kept")
        ctx.elicit("q", "?", bool)

    def new(ctx: Context) -> bool:
        step(ctx, "inserted")
        step(ctx, "kept")
        return ctx.elicit("q", "?", bool)

    call = Passes(old)
    call()
    upgraded = call.on(new)
    assert upgraded(q=accept(True)) == Done(True)
    assert ran == ["removed", "kept", "inserted"]


# -- rolling upgrades -----------------------------------------------------------------------------------


def logins(*names: str) -> Any:
    return lambda ctx: list(ctx.ask(*(Elicit(name, f"{name}?", str) for name in names)))


def test_in_a_rolling_upgrade_nobody_is_asked_twice_however_the_builds_alternate() -> None:
    old, new = logins("github", "google"), logins("github", "microsoft")
    call = Passes(old)
    assert asked(call()).keys() == {"github", "google"}
    call = call.on(new)
    assert asked(call(github=accept("a"), google=accept("b"))).keys() == {"microsoft"}
    call = call.on(old)
    assert call(microsoft=accept("c")) == Done(["a", "b"])


def test_an_answer_kept_for_another_build_cannot_be_replaced_by_the_client() -> None:
    call = Passes(logins("github", "google"))
    call()
    call = call.on(logins("github", "microsoft"))
    call(github=accept("a"), google=accept("first"))
    call = call.on(logins("github", "google"))
    assert call(google=accept("second"), microsoft=accept("c")) == Done(["a", "first"])


# -- capabilities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "question", "missing"),
    [
        ({}, lambda ctx: ctx.elicit("k", "?", str), {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, lambda ctx: ctx.elicit("k", "?", str), {"elicitation": {"form": {}}}),
        (
            {"elicitation": {}},
            lambda ctx: ctx.elicit_url("k", "?", "https://x.test", done=bool),
            {"elicitation": {"url": {}}},
        ),
        ({}, lambda ctx: ctx.sample("k", "?", max_tokens=1), {"sampling": {}}),
        (
            {"sampling": {}},
            lambda ctx: ctx.sample("k", "?", max_tokens=1, tools=[]),
            {"sampling": {"tools": {}}},
        ),
        (
            {"sampling": {}},
            lambda ctx: ctx.sample("k", "?", max_tokens=1, includeContext="thisServer"),
            {"sampling": {"context": {}}},
        ),
        ({}, lambda ctx: ctx.list_roots(), {"roots": {}}),
    ],
)
def test_a_question_the_client_cannot_be_asked_names_exactly_what_is_missing(
    capabilities: dict[str, Any], question: Any, missing: dict[str, Any]
) -> None:
    failure = error(Passes(question, capabilities)())
    assert isinstance(failure, MissingClientCapability)
    assert failure.code == -32021
    assert failure.data == {"requiredCapabilities": missing}


def test_all_that_a_round_misses_is_named_at_once() -> None:
    def body(ctx: Context) -> Any:
        return ctx.ask(Elicit("a", "?", str), Sample("b", "?", 1), ListRoots())

    failure = error(Passes(body, {"sampling": {}})())
    assert isinstance(failure, MissingClientCapability)
    assert failure.required == {"elicitation": {"form": {}}, "roots": {}}


def test_a_default_stands_in_for_what_cannot_be_asked_and_the_rest_is_asked() -> None:
    def body(ctx: Context) -> Any:
        return list(ctx.ask(Elicit("unit", "Unit?", str, default="celsius"), ListRoots()))

    call = Passes(body, {"roots": {}})
    assert asked(call()).keys() == {"roots"}
    assert call(roots={"roots": []}) == Done(["celsius", ()])


def test_a_default_once_taken_stays_even_if_the_client_could_be_asked_later() -> None:
    def body(ctx: Context) -> str:
        unit = ctx.elicit("unit", "Unit?", str, default="celsius")
        ctx.list_roots()
        return unit

    call = Passes(body, {"roots": {}})
    call()
    call.capabilities = {"roots": {}, "elicitation": {}}
    assert call(roots={"roots": []}) == Done("celsius")


def test_a_default_is_not_used_where_the_client_can_be_asked() -> None:
    assert asked(Passes(lambda ctx: ctx.elicit("unit", "Unit?", str, default="celsius"))()).keys() == {"unit"}


def test_none_may_be_a_default() -> None:
    assert Passes(lambda ctx: ctx.elicit("unit", "Unit?", str, default=None), {})() == Done(None)


def test_a_tool_may_catch_a_missing_capability_and_do_without() -> None:
    def body(ctx: Context) -> str:
        try:
            ctx.list_roots()
        except MissingClientCapability:
            return "without"
        return "with"

    assert Passes(body, {})() == Done("without")


# -- suspension -----------------------------------------------------------------------------------------


def test_except_exception_does_not_swallow_a_suspension() -> None:
    def body(ctx: Context) -> str:
        try:
            return ctx.elicit("q", "?", str)
        except Exception:
            return "swallowed"

    assert asked(Passes(body)()).keys() == {"q"}


def test_a_run_that_was_suspended_stays_suspended_whatever_the_tool_does() -> None:
    ran: list[str] = []

    def body(ctx: Context) -> str:
        with suppress(BaseException):
            ctx.elicit("q", "?", str)
        with suppress(BaseException):
            ctx.step("cleanup", lambda: ran.append("cleanup"))
        return "went on"

    assert asked(Passes(body)()).keys() == {"q"}
    assert ran == []


def test_finally_blocks_run_in_every_pass_but_their_steps_only_in_the_last() -> None:
    ran: list[str] = []

    def body(ctx: Context) -> str:
        try:
            return ctx.elicit("q", "?", str)
        finally:
            ran.append("finally")
            ctx.step("cleanup", lambda: ran.append("step"))

    call = Passes(body)
    call()
    assert ran == ["finally"]
    assert call(q=accept("x")) == Done("x")
    assert ran == ["finally", "finally", "step"]


def test_a_tool_that_exits_is_a_failed_tool() -> None:
    def body(ctx: Context) -> None:
        raise SystemExit(1)

    assert isinstance(error(Passes(body)()), SystemExit)


# -- steps ----------------------------------------------------------------------------------------------


def test_a_step_runs_once_over_all_rounds_and_gives_the_same_value() -> None:
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


def test_a_step_that_raises_is_not_remembered() -> None:
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


def test_a_recorded_result_that_no_longer_fits_its_annotation_is_drift() -> None:
    def old() -> str:
        return "x"

    def new() -> int:
        return 1

    call = Passes(lambda ctx: [ctx.step("s", old), ctx.elicit("q", "?", bool)])
    call()
    failure = error(call.on(lambda ctx: ctx.step("s", new))())
    assert isinstance(failure, Drift)
    assert failure.key == "s"


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
    outcome = Passes(lambda ctx: [ctx.idempotency_key("a"), ctx.idempotency_key("b")])()
    assert isinstance(outcome, Done)
    one, other = outcome.value
    assert one != other
    assert len(one) == 32


# -- checkpoints ----------------------------------------------------------------------------------------


def long_work(*names: str) -> Any:
    def body(ctx: Context) -> list[str]:
        return [ctx.step(name, lambda name=name: name) for name in names]

    return body


def test_with_little_time_left_a_step_gives_the_state_back_before_it_runs() -> None:
    call = Passes(long_work("a", "b", "c"), remaining_ms=10)
    outcome = call()
    assert isinstance(outcome, Shed)
    assert [entry.key for entry in outcome.journal.entries] == ["a"]
    assert isinstance(call(), Shed)
    assert call() == Done(["a", "b", "c"])


def test_a_round_without_progress_never_gives_its_state_back() -> None:
    assert Passes(long_work("a"), remaining_ms=0)() == Done(["a"])


def test_a_checkpoint_can_say_how_much_time_it_needs() -> None:
    def body(ctx: Context) -> str:
        ctx.step("a", int)
        ctx.checkpoint(needs_ms=10_000)
        return "done"

    assert isinstance(Passes(body, remaining_ms=9_000)(), Shed)
    assert Passes(body, remaining_ms=11_000)() == Done("done")


def test_the_kinds_in_a_journal_are_the_ones_that_travel() -> None:
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


def test_literals_are_answered_by_one_of_their_values() -> None:
    call = Passes(lambda ctx: ctx.elicit("unit", "Unit?", Literal["celsius", "fahrenheit"]))
    schema = asked(call())["unit"]["params"]["requestedSchema"]
    assert schema["properties"]["value"]["enum"] == ["celsius", "fahrenheit"]
    assert call(unit=accept("celsius")) == Done("celsius")


# -- what a tool does to what it gets -------------------------------------------------------------------


def test_changing_what_a_step_returned_does_not_change_the_journal() -> None:
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


def test_changing_what_was_answered_does_not_change_the_journal() -> None:
    said = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}

    def body(ctx: Context) -> str:
        sampled = ctx.sample("say", "?", max_tokens=1)
        sampled.content["text"] += "!"
        ctx.elicit("ok", "?", bool)
        return sampled.text

    call = Passes(body)
    call()
    call(say=said)
    assert call(ok=accept(True)) == Done("x!")


# -- found in review ------------------------------------------------------------------------------------


def test_an_invalid_answer_does_not_get_a_client_asked_what_it_did_not_declare() -> None:
    failure = error(Passes(lambda ctx: ctx.elicit("q", "?", int), {})(q=accept("many")))
    assert isinstance(failure, MissingClientCapability)


def test_questions_of_a_refused_round_are_not_asked_later() -> None:
    def body(ctx: Context) -> Any:
        with suppress(MissingClientCapability):
            ctx.ask(Elicit("a", "?", str), Sample("s", "?", 1))
        return ctx.elicit("b", "?", str)

    assert asked(Passes(body, {"elicitation": {}})()).keys() == {"b"}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit])
def test_nothing_a_tool_raises_gets_past_the_replay(kind: type[BaseException]) -> None:
    def body(ctx: Context) -> None:
        raise kind

    assert isinstance(error(Passes(body)()), kind)


def test_a_suspension_inside_a_group_is_a_suspension() -> None:
    def body(ctx: Context) -> None:
        try:
            ctx.elicit("q", "?", str)
        except BaseException as suspension:
            raise BaseExceptionGroup("wrapped", [suspension]) from None

    assert asked(Passes(body)()).keys() == {"q"}


def test_a_checkpoint_inside_a_step_is_refused_before_the_step_is_cut() -> None:
    def body(ctx: Context) -> None:
        ctx.step("first", int)
        ctx.step("second", lambda: ctx.checkpoint(needs_ms=1e9))

    assert isinstance(error(Passes(body)()), UsageError)


def test_of_one_ask_any_question_may_change_and_is_asked_again() -> None:
    def asking(*messages: str) -> Any:
        def body(ctx: Context) -> Any:
            answers = ctx.ask(*(Elicit(f"k{index}", text, str) for index, text in enumerate(messages)))
            ctx.list_roots()
            return list(answers)

        return body

    call = Passes(asking("a?", "b?"))
    call()
    call(k0=accept("a"), k1=accept("b"))
    changed = call.on(asking("A?", "b?"))
    assert asked(changed()).keys() == {"k0"}
    changed(k0=accept("A"))
    assert changed(roots={"roots": []}) == Done(["A", "b"])


def test_an_answer_a_new_build_finds_invalid_is_asked_again_with_the_reason() -> None:
    call = Passes(lambda ctx: [ctx.elicit("n", "How many?", Even), ctx.list_roots()])
    call()
    call(n=accept(n=3))
    Even.strict = True
    try:
        message = asked(call())["n"]["params"]["message"]
    finally:
        Even.strict = False
    assert "must be even" in message


class Opaque:
    """Nothing that JSON could hold."""


class Even(BaseModel):
    n: int
    strict: ClassVar[bool] = False

    @field_validator("n")
    @classmethod
    def even(cls, value: int) -> int:
        if cls.strict and value % 2:
            raise ValueError("must be even")
        return value


def test_a_default_that_is_gone_is_asked_for_while_nothing_rests_on_it() -> None:
    call = Passes(lambda ctx: [ctx.elicit("u", "?", str, default="c"), ctx.list_roots()], {"roots": {}})
    call()
    call.capabilities = {"roots": {}, "elicitation": {}}
    assert asked(call.on(lambda ctx: ctx.elicit("u", "?", str))()).keys() == {"u"}


def test_a_result_no_journal_can_carry_is_refused_before_the_step_runs() -> None:
    ran: list[int] = []

    def effect() -> Opaque:
        ran.append(1)
        return Opaque()

    assert isinstance(error(Passes(lambda ctx: ctx.step("s", effect))()), UsageError)
    assert ran == []


def test_a_result_that_does_not_survive_its_annotation_is_the_authors_mistake_and_no_drift() -> None:
    def pairs() -> dict[tuple[int, int], str]:
        return {(1, 2): "x"}

    assert isinstance(error(Passes(lambda ctx: ctx.step("s", pairs))()), UsageError)


def test_a_result_nested_too_deeply_is_refused_while_the_call_can_still_say_so() -> None:
    def deep():  # type: ignore[no-untyped-def]  # an author's function without annotations
        value: list[Any] = []
        for _ in range(100):
            value = [value]
        return value

    assert isinstance(error(Passes(lambda ctx: ctx.step("s", deep))()), UsageError)


@pytest.mark.parametrize("name", ["", "a/b", "~"])
def test_the_names_of_idempotency_keys_follow_the_rules_of_keys(name: str) -> None:
    assert isinstance(error(Passes(lambda ctx: ctx.idempotency_key(name))()), InvalidKey)
