"""Questions that only the user may answer: answers count only after the client received the question."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

from mcp_roundtrip import Context
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.outcomes import Done, NeedsInput
from support.passes import Passes, accept, asked


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


@pytest.mark.parametrize(("model", "answer"), CONFIRMATIONS, ids=str)
def test_a_confirmation_sent_before_its_question_is_ignored(model, answer):
    call = Passes(lambda ctx: ctx.elicit("question", "Well?", model))
    assert asked(call(question=answer)).keys() == {"question"}
    assert not isinstance(call(question=answer), NeedsInput)


def test_a_url_behind_a_confirmation_may_be_visited_before_it_is_sent():
    def body(ctx: Context) -> None:
        ctx.elicit("sure", "Sure?", bool)
        ctx.elicit_url("page", "Go there", "https://x.test", done=lambda: True)

    call = Passes(body).begun()
    assert call(sure=accept(True), page={"action": "accept"}) == Done(None)


def test_a_namespaced_request_cannot_be_answered_in_advance():
    call = Passes(
        lambda ctx: ctx.request("approval", "com.example/approval")["approved"],
        {"extensions": {"com.example/approval": {}}},
        info=CallInfo(namespaced_requests=True),
    )
    assert asked(call(approval={"approved": True})).keys() == {"approval"}
    assert call(approval={"approved": False}) == Done(False)
