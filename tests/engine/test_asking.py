"""Questions and answers: which questions are sent, which answers are accepted, what is asked again."""

from contextlib import suppress
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, Field, field_validator

from mcp_roundtrip import (
    AsyncContext,
    Context,
    Drift,
    Elicit,
    ElicitUrl,
    ListRoots,
    MissingClientCapability,
    Sample,
)
from mcp_roundtrip.engine.outcomes import Done
from mcp_roundtrip.protocol.results import MalformedInputResponse
from support.passes import AsyncPasses, Passes, accept, asked, error


class Size(BaseModel):
    vcpus: int = Field(ge=1, le=16)


def size_then_name(ctx: Context) -> str:
    size = ctx.elicit("size", "How large?", Size)
    name = ctx.elicit("name", "Which name?", str)
    return f"{name}:{size.vcpus}"


def test_a_question_is_asked_until_it_is_answered_and_other_answers_are_ignored():
    call = Passes(size_then_name).begun()
    assert asked(call()).keys() == {"size"}
    assert asked(call(name=accept("early"))).keys() == {"size"}
    assert asked(call(size=accept(vcpus=4))).keys() == {"name"}
    assert call(name=accept("orders")) == Done("orders:4")


@pytest.mark.parametrize("has_state", [False, True])
def test_an_answer_in_advance_is_no_answer_to_a_confirmation_or_after_an_effect(has_state):
    def body(ctx: Context) -> Any:
        ctx.elicit("size", "How large?", int)
        return [ctx.elicit("sure", "Sure?", bool), ctx.step("create", int), ctx.elicit("name", "Who?", str)]

    call = Passes(body)
    if has_state:
        call()
    assert asked(call(size=accept(4), sure=accept(True), name=accept("x"))).keys() == {"sure"}
    assert asked(call(sure=accept(True), name=accept("x"))).keys() == {"name"}


def test_a_repeated_answer_does_not_answer_a_question_that_changed_since():
    prices = iter(["10", "10", "11"])
    call = Passes(
        lambda ctx: ctx.ask(Elicit("price", f"{next(prices)} EUR?", str), Elicit("name", "?", str))
    ).begun()
    assert asked(call(price=accept("ok"))).keys() == {"name"}
    assert asked(call(price=accept("ok"), name=accept("x"))).keys() == {"price"}


@pytest.mark.parametrize("answer", [{"action": "Accept", "content": {"vcpus": 8}}, {"action": "accept"}, "8"])
def test_a_malformed_answer_fails_the_pass_if_it_was_asked_and_the_client_may_send_another(answer):
    call = Passes(lambda ctx: ctx.elicit("size", "How large?", Size).vcpus).begun()
    failure = error(call(size=answer), MalformedInputResponse)
    assert (failure.code, failure.key) == (-32602, "size")
    assert call(size=accept(vcpus=8), other=answer) == Done(8)


def test_a_malformed_answer_cannot_be_caught_by_the_tool():
    def body(ctx: Context) -> str:
        with suppress(Exception):
            return str(ctx.elicit("size", "How large?", int))
        return "caught"

    call = Passes(body).begun()
    assert isinstance(error(call(size="text")), MalformedInputResponse)


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_malformed_answer_beside_a_branch_that_runs_an_effect_repeats_no_effect(names):
    runs: list[int] = []

    async def create(branch: AsyncContext) -> None:
        await branch.elicit("size", "How large?", int)
        await branch.step("create", lambda: runs.append(1))

    async def name(branch: AsyncContext) -> None:
        await branch.elicit("name", "Who?", str)

    call = AsyncPasses(lambda ctx: ctx.gather(dict(zip(names, (create, name), strict=True)))).begun()
    size, who = (f"{names[0]}/size", f"{names[1]}/name")
    call(**{size: accept(1), who: "text"})
    assert isinstance(call(**{size: accept(1), who: accept("Ada")}), Done)
    assert len(runs) == 1


def test_after_an_effect_of_the_same_pass_a_malformed_answer_is_asked_again_as_if_it_were_missing():
    def body(ctx: Context) -> str:
        size = ctx.elicit("size", "How large?", int)
        ctx.step("create", int)
        return f"{size} {ctx.elicit('name', 'Who?', str)}"

    call = Passes(body).begun()
    journal = call.journal
    assert journal is not None
    request = Elicit("name", "Who?", str).request()
    # In a rolling deployment, an earlier version may have asked both at once.
    call.journal = replace(journal, outstanding={**journal.outstanding, "name": request.fingerprint})
    again = asked(call(size=accept(8), name="text"))
    assert again["name"]["params"]["message"] == "Who?"
    assert call(name=accept("Ada")) == Done("8 Ada")


def test_a_malformed_answer_that_the_state_holds_is_asked_again():
    asked_before = Passes(lambda ctx: ctx.ask(Elicit("a", "?", str), Elicit("b", "?", str))).begun()
    without_b = asked_before.on(lambda ctx: ctx.elicit("a", "?", str) + ctx.elicit("c", "?", str))
    assert asked(without_b(a=accept("x"), b="text")).keys() == {"c"}
    with_b = without_b.on(lambda ctx: ctx.ask(Elicit("a", "?", str), Elicit("b", "?", str))[1])
    assert asked(with_b(c=accept("y")))["b"]["params"]["message"] == "?"
    assert with_b(b=accept("z")) == Done("z")


def asks(message: str = "Which?", model: Any = str, *, then: bool = False) -> Any:
    def body(ctx: Context) -> Any:
        answer = ctx.elicit("question", message, model)
        if then:
            ctx.step("later", int)
        ctx.elicit("last", "More?", bool)
        return answer

    return body


def test_an_answer_to_a_question_that_changed_meanwhile_is_ignored():
    call = Passes(asks("Delete the copy?", bool)).begun()
    changed = call.on(asks("Delete the original?", bool))
    assert asked(changed(question=accept(True)))["question"]["params"]["message"] == "Delete the original?"


def test_a_changed_question_is_asked_again_while_nothing_later_is_journaled():
    call = Passes(asks("Which?")).begun()
    call(question=accept("a"))
    changed = call.on(asks("Which one?"))
    assert asked(changed()).keys() == {"question"}
    assert asked(changed(question=accept("b"))).keys() == {"last"}
    assert changed(last=accept(True)) == Done("b")


def test_what_a_new_build_records_before_a_changed_question_does_not_depend_on_its_answer():
    call = Passes(asks("Which?")).begun()
    call(question=accept("a"))

    def priced(ctx: Context) -> Any:
        return asks(f"Which, for {ctx.step('price', int)}?")(ctx)

    changed = call.on(priced)
    assert asked(changed())["question"]["params"]["message"] == "Which, for 0?"
    assert asked(changed(question=accept("b"))).keys() == {"last"}
    assert changed(last=accept(True)) == Done("b")


@pytest.mark.parametrize(
    ("now", "word"), [(asks("Which one?", then=True), "message"), (asks(model=int, then=True), "form")]
)
def test_a_changed_question_before_later_effects_is_drift_that_names_the_change(now, word):
    call = Passes(asks(then=True)).begun()
    call(question=accept("a"))
    failure = error(call.on(now)(), Drift)
    assert failure.key == "question"
    assert word in failure.changed


def logins(*names: str) -> Any:
    return lambda ctx: list(ctx.ask(*(Elicit(name, f"{name}?", str) for name in names)))


def test_a_journaled_answer_of_another_build_cannot_be_replaced_by_the_client():
    call = Passes(logins("github", "google")).begun()
    call = call.on(logins("github", "microsoft"))
    call(github=accept("a"), google=accept("first"))
    call = call.on(logins("github", "google"))
    assert call(google=accept("second"), microsoft=accept("c")) == Done(["a", "first"])


@pytest.mark.parametrize(
    ("declared", "question", "missing"),
    [
        ({"elicitation": {"url": {}}}, Elicit("k", "?", str), {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, ElicitUrl("k", "?", "https://x.test", bool), {"elicitation": {"url": {}}}),
        ({"sampling": {}}, Sample("k", "?", 1, {"tools": []}), {"sampling": {"tools": {}}}),
        (
            {"sampling": {}},
            Sample("k", "?", 1, {"includeContext": "thisServer"}),
            {"sampling": {"context": {}}},
        ),
    ],
)
def test_an_unsupported_question_names_exactly_the_missing_capabilities(declared, question, missing):
    failure = error(Passes(lambda ctx: ctx.ask(question), declared)(), MissingClientCapability)
    assert (failure.code, failure.data) == (-32021, {"requiredCapabilities": missing})


@pytest.mark.parametrize("default", ["celsius", None])
def test_defaults_replace_only_the_questions_that_cannot_be_asked(default):
    def body(ctx: Context) -> Any:
        return list(ctx.ask(Elicit("unit", "Unit?", str, default=default), ListRoots()))

    assert asked(Passes(body)()).keys() == {"unit", "roots"}
    call = Passes(body, {"roots": {}})
    assert asked(call()).keys() == {"roots"}
    assert call(roots={"roots": []}) == Done([default, ()])


def test_mutating_an_answer_does_not_change_the_journal():
    said = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}

    def body(ctx: Context) -> str:
        sampled = ctx.sample("say", "?", max_tokens=1)
        sampled.content["text"] += "!"
        ctx.elicit("ok", "?", bool)
        return sampled.text

    call = Passes(body).begun()
    call(say=said)
    assert call(ok=accept(True)) == Done("x!")


def test_a_changed_question_within_one_ask_is_asked_again():
    def asking(*messages: str) -> Any:
        def body(ctx: Context) -> Any:
            answers = ctx.ask(*(Elicit(f"k{index}", text, str) for index, text in enumerate(messages)))
            ctx.list_roots()
            return list(answers)

        return body

    call = Passes(asking("a?", "b?")).begun()
    call(k0=accept("a"), k1=accept("b"))
    changed = call.on(asking("A?", "b?"))
    assert asked(changed()).keys() == {"k0"}
    changed(k0=accept("A"))
    assert changed(roots={"roots": []}) == Done(["A", "b"])


def test_an_answer_that_a_new_build_rejects_is_asked_again_with_the_reason():
    call = Passes(lambda ctx: [ctx.elicit("n", "How many?", Even), ctx.list_roots()]).begun()
    call(n=accept(n=3))
    Even.strict = True
    try:
        message = asked(call())["n"]["params"]["message"]
    finally:
        Even.strict = False
    assert "must be even" in message


class Even(BaseModel):
    n: int
    strict: ClassVar[bool] = False

    @field_validator("n")
    @classmethod
    def even(cls, value: int) -> int:
        if cls.strict and value % 2:
            raise ValueError("must be even")
        return value


def test_the_question_of_a_removed_default_is_asked_if_nothing_depends_on_it():
    call = Passes(
        lambda ctx: [ctx.elicit("u", "?", str, default="c"), ctx.list_roots()], {"roots": {}}
    ).begun()
    call.capabilities = {"roots": {}, "elicitation": {}}
    assert asked(call.on(lambda ctx: ctx.elicit("u", "?", str))()).keys() == {"u"}
