"""Questions that only the user may answer: answers count only after the client received the question."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

from mcp_roundtrip import (
    AsyncContext,
    Context,
    ElicitationCancelled,
    MissingClientCapability,
)
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.outcomes import Done, NeedsInput, Outcome
from support.passes import AsyncPasses, Passes, accept, asked, error


def pay(ctx: Context, to: str = "bob") -> str:
    return "paid" if ctx.confirm("sure", f"Pay 50 to {to}?") else "not paid"


class Sure(BaseModel):
    sure: bool
    remark: str = ""


@dataclass
class Consent:
    terms: bool
    privacy: bool


class Flags(TypedDict, total=False):
    loud: bool


class Size(BaseModel):
    vcpus: int
    backups: bool = True


CONFIRMATIONS: list[tuple[Any, dict[str, Any]]] = [
    (bool, accept(True)),
    (bool, {"action": "decline"}),
    (bool, {"action": "cancel"}),
    (bool | None, accept(True)),
    (Annotated[bool, Field(description="Sure?")], accept(True)),
    (RootModel[bool], accept(True)),
    (Sure, accept(sure=True)),
    (Consent, accept(terms=True, privacy=True)),
    (Flags, accept(loud=True)),
]


def of(model: Any, **options: Any) -> Callable[[Context], Any]:
    return lambda ctx: ctx.elicit("question", "Well?", model, **options)


@pytest.mark.parametrize(("model", "answer"), CONFIRMATIONS, ids=str)
def test_a_confirmation_sent_before_its_question_is_ignored(model, answer):
    call = Passes(of(model))
    assert asked(call(question=answer)).keys() == {"question"}
    assert not isinstance(call(question=answer), NeedsInput)


SAID = {"role": "assistant", "content": {"type": "text", "text": "rent"}, "model": "m"}


def test_other_forms_and_sampling_may_be_answered_in_advance():
    assert Passes(of(str))(question=accept("x")) == Done("x")
    assert isinstance(Passes(of(Size))(question=accept(vcpus=1)), Done)
    assert Passes(lambda ctx: ctx.sample("why", "Why?", max_tokens=9).text)(why=SAID) == Done("rent")


def test_the_author_can_override_the_default():
    assert Passes(of(bool, user_only=False))(question=accept(True)) == Done(True)
    call = Passes(of(str, user_only=True))
    assert asked(call(question=accept("yes"))).keys() == {"question"}
    assert call(question=accept("yes")) == Done("yes")


def test_questions_after_a_confirmation_cannot_be_answered_in_advance():
    def body(ctx: Context) -> list[Any]:
        sure = ctx.confirm("sure", "Pay?", default=False)
        return [sure, ctx.sample("why", "Why?", max_tokens=9).text]

    call = Passes(body, {"sampling": {}})
    assert asked(call(sure=accept(True), why=SAID)).keys() == {"why"}
    assert call(why=SAID) == Done([False, "rent"])
    assert error(Passes(pay, {})(), MissingClientCapability)


def test_questions_that_other_branches_reach_later_are_sent():
    branches: dict[str, Any] = {
        "a": lambda branch: branch.confirm("sure", "Pay?"),
        "b": lambda branch: branch.elicit("why", "Why?", str),
    }
    call = AsyncPasses(lambda ctx: ctx.gather(branches))
    answers = {"a/sure": accept(True), "b/why": accept("rent"), "b/sure": accept(True)}
    assert asked(call(**answers)).keys() == {"a/sure", "b/why"}
    assert asked(call(**{"b/sure": accept(True), "b/why": accept("rent")})).keys() == {"a/sure"}
    assert call(**answers) == Done({"a": True, "b": "rent"})


def test_a_namespaced_request_cannot_be_answered_in_advance():
    call = Passes(
        lambda ctx: ctx.request("approval", "com.example/approval")["approved"],
        {"extensions": {"com.example/approval": {}}},
        info=CallInfo(namespaced_requests=True),
    )
    assert asked(call(approval={"approved": True})).keys() == {"approval"}
    assert call(approval={"approved": False}) == Done(False)


async def pay_later(ctx: AsyncContext) -> str:
    return "paid" if await ctx.confirm("sure", "Pay 50 to bob?") else "not paid"


@pytest.mark.parametrize("passes", [Passes(pay), AsyncPasses(pay_later)], ids=["sync", "async"])
def test_only_an_accepted_yes_confirms(passes):
    def reply(answer: Any) -> Outcome:
        call = passes.on(passes.body)
        form = asked(call())["sure"]["params"]
        assert form["requestedSchema"]["properties"] == {"value": {"type": "boolean"}}
        return call(sure=answer)

    assert reply(accept(True)) == Done("paid")
    assert reply(accept(False)) == reply({"action": "decline"}) == Done("not paid")
    assert error(reply({"action": "cancel"}), ElicitationCancelled).key == "sure"
