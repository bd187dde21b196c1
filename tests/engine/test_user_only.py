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
)
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


def test_the_author_can_override_the_default():
    assert Passes(of(bool, user_only=False))(question=accept(True)) == Done(True)
    call = Passes(of(str, user_only=True))
    assert asked(call(question=accept("yes"))).keys() == {"question"}
    assert call(question=accept("yes")) == Done("yes")


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
