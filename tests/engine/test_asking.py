"""Questions and answers: which questions are sent, which answers are accepted, what is asked again."""

from contextlib import suppress
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

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
from mcp_roundtrip.engine import asking
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.outcomes import Done
from mcp_roundtrip.protocol.input_responses import MalformedInputResponse
from support.passes import EVERYTHING, AsyncPasses, Passes, accept, asked, error


def test_a_repeated_answer_does_not_answer_a_question_that_changed_since():
    prices = iter(["10", "10", "11"])
    call = Passes(
        lambda ctx: ctx.ask(Elicit("price", f"{next(prices)} EUR?", str), Elicit("name", "?", str))
    ).begun()
    assert asked(call(price=accept("ok"))).keys() == {"name"}
    assert asked(call(price=accept("ok"), name=accept("x"))).keys() == {"price"}


def test_an_answer_sent_before_its_question_does_not_count_after_an_effect():
    def body(ctx: Context) -> str:
        ctx.step("made", int)
        ctx.elicit("size", "How large?", int)
        return ctx.elicit("name", "Who?", str)

    call = Passes(body).begun()
    assert asked(call(size=accept(1), name=accept("Ada"))).keys() == {"name"}


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


@pytest.mark.parametrize(
    ("declared", "question", "missing"),
    [
        ({"elicitation": {"url": {}}}, Elicit("k", "?", str), {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, ElicitUrl("k", "?", "https://x.test", bool), {"elicitation": {"url": {}}}),
        ({"sampling": {}}, Sample("k", "?", 1, {"tools": []}), {"sampling": {"tools": {}}}),
        ({"sampling": {}}, Sample("k", "?", 1, {"toolChoice": {}}), {"sampling": {"tools": {}}}),
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
    assert Passes(lambda ctx: ctx.confirm("sure", "?", default=True), {})() == Done(True)


def test_a_default_that_the_new_build_lacks_is_not_taken():
    def body(has_step: bool = False, **default: Any) -> Any:
        return lambda ctx: (
            ctx.elicit("unit", "Unit?", str, **default),
            has_step and ctx.step("later", int),
            ctx.list_roots(),
        )

    call = Passes(body(default="celsius"), {"roots": {}}).begun()
    failure = error(call.on(body())(), MissingClientCapability)
    assert failure.questions.keys() == {"unit"}
    call = Passes(body(has_step=True, default="celsius"), {"roots": {}}).begun()
    assert error(call.on(body(has_step=True))(), Drift).key == "unit"


def test_a_recorded_answer_that_a_new_build_refuses_is_asked_again_unless_a_step_may_depend_on_it():
    def body(kind: Any, *, has_step: bool = False) -> Any:
        def ask(ctx: Context) -> list[str]:
            size = ctx.elicit("size", "Size?", kind)
            if has_step:
                ctx.step("order", lambda: None)
            return [size, ctx.elicit("name", "Who?", str)]

        return ask

    def refuse_huge(size: str) -> str:
        if size == "huge":
            raise ValueError("Too large.")
        return size

    for has_step in (False, True):
        call = Passes(body(str, has_step=has_step)).begun()
        assert asked(call(size=accept("huge"))).keys() == {"name"}
        newer = call.on(body(Annotated[str, AfterValidator(refuse_huge)], has_step=has_step))
        if has_step:
            error(newer(name=accept("Ada")), Drift)
        else:
            assert asked(newer(name=accept("Ada"))).keys() == {"size"}
            assert newer(size=accept("large")) == Done(["large", "Ada"])


def test_a_recorded_answer_that_an_earlier_version_accepted_is_asked_again(monkeypatch):
    half_of_a_pair = {"role": "assistant", "content": {"type": "text", "text": "\ud83d"}, "model": "m"}

    def greet(ctx: Context) -> list[str]:
        said = ctx.sample("say", "Say hello.", max_tokens=9)
        return [said.text, ctx.elicit("name", "Who?", str)]

    call = Passes(greet).begun()
    with monkeypatch.context() as earlier:
        earlier.setattr(asking, "read_response", lambda key, request, response: response)
        assert asked(call(say=half_of_a_pair)).keys() == {"name"}
    assert asked(call(name=accept("Ada"))).keys() == {"say"}


def test_an_answer_is_the_same_in_each_pass_without_meta_and_also_if_the_tool_changes_it():
    def body(ctx: Context) -> Any:
        answer: Any = ctx.request("approval", "com.example/approval")
        answer["by"].append("tool")
        return [answer, ctx.elicit("ok", f"{answer}?", bool)]

    capabilities = {**EVERYTHING, "extensions": {"com.example/approval": {}}}
    call = Passes(body, capabilities, info=CallInfo(namespaced_requests=True)).begun()
    call(approval={"by": ["Ada"], "_meta": {"com.example/trace": 1}})
    assert call(ok=accept(True)) == Done([{"by": ["Ada", "tool"]}, True])


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
