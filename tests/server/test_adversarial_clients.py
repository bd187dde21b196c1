"""An adversarial client: it answers in advance, other texts, with other keys and states of other calls.

No question that only the user may answer, and no question after it, is confirmed unless
this client received the question with exactly this text in the state that it returns.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from pydantic import BaseModel

from mcp_roundtrip import AsyncContext, Context, Elicit, MissingClientCapability, Server
from mcp_roundtrip_testing import DECLINE, Player
from support.deployment import legacy

pytestmark = pytest.mark.filterwarnings("ignore::mcp_roundtrip_testing.QuestionChanged")  # intended


class Terms(BaseModel):
    agreed: bool


shop = SimpleNamespace(price=5, confirmed=[])
"""State of the tools: a price that is in every question, and the confirmations of this request."""


server = Server("shop", channels=("model",))


def record_confirmation(key, message, answer):
    """Record an answer that has an effect."""
    if answer:
        shop.confirmed.append((key, message))


@server.tool
def pay(ctx: Context, to: str) -> str:
    ctx.elicit("note", f"A note to {to}, for {shop.price}?", str)
    for key in ("sure", "again"):
        text = f"Pay {shop.price} to {to}?"
        record_confirmation(key, text, ctx.confirm(key, text))
        ctx.step(f"pay {key}", int)
    return "paid"


@server.tool
def order(ctx: Context, to: str) -> str:
    texts = [f"Send it to {to}?", f"Pay {shop.price}?", f"The terms of {to}, {shop.price}?"]
    answers = ctx.ask(
        Elicit("to", texts[0], str), Elicit("sure", texts[1], bool), Elicit("terms", texts[2], Terms)
    )
    record_confirmation("sure", texts[1], answers[1])
    record_confirmation("terms", texts[2], answers[2].agreed)
    text = f"What else for {shop.price}?"
    record_confirmation("else", text, ctx.elicit("else", text, str))
    return "ordered"


@server.tool
def transfer(ctx: Context, to: str) -> str:
    """Continue without the user if necessary, and ask afterwards."""
    text = f"Transfer {shop.price} to {to}?"
    with suppress(MissingClientCapability):
        record_confirmation("sure", text, ctx.confirm("sure", text, default=False))
    text = f"To which account of {to}, for {shop.price}?"
    record_confirmation("account", text, ctx.elicit("account", text, str))
    return "transferred"


@server.tool
async def split(ctx: AsyncContext, to: str) -> str:
    async def share(ctx: AsyncContext, name: str) -> None:
        await ctx.step("look up", int)
        text = f"{shop.price} from everyone to {to}?"  # the same text in each branch
        record_confirmation(f"{name}/sure", text, await ctx.confirm("sure", text))
        text = f"When, {name}, at {shop.price}?"
        record_confirmation(f"{name}/when", text, await ctx.elicit("when", text, str, user_only=True))

    await ctx.gather({name: lambda ctx, name=name: share(ctx, name) for name in ("a", "b")})
    return "split"


KEYS = ("note", "sure", "again", "to", "terms", "else", "account", "a/sure", "b/sure", "a/when", "b/when")
ANSWERS = st.dictionaries(
    st.sampled_from([*KEYS, "sure~2", "SURE", "a", "a/b/sure"]),
    st.sampled_from(
        [
            *[{"action": "accept", "content": {"value": value}} for value in (True, True, "x", "x", False)],
            {"action": "accept", "content": {"agreed": True}},
            dict(DECLINE),
            {"action": "accept"},
        ]
    ),
    max_size=8,
)
CALLS = st.tuples(
    st.sampled_from(["pay", "order", "transfer", "split"]),
    st.sampled_from(["bob", "eve"]).map(lambda to: {"to": to}),
)
CAPABILITIES = st.sampled_from([{"elicitation": {"form": {}}}, {"elicitation": {"form": {}}}, {}])

Texts = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Issued:
    """A state, the questions in the response with it, and the confirmations up to then."""

    state: str | None
    call: tuple[str, dict[str, str]]
    shown: dict[str, str]
    answered: Texts = frozenset()

    def answered_with(self, call: tuple[str, dict[str, str]], answers: dict[str, Any]) -> Texts:
        """Return the questions that count as answered if these answers arrive with this state."""
        if call != self.call:
            return frozenset()
        now = {(key, text) for key, text in self.shown.items() if answers.get(key, DECLINE) != DECLINE}
        return self.answered | now


@contextmanager
def one_request(allowed: Texts) -> Iterator[None]:
    """Check that the request confirms only questions that were sent and answered."""
    shop.confirmed = []
    yield
    assert set(shop.confirmed) <= allowed, set(shop.confirmed) - allowed


class AdversarialClient(RuleBasedStateMachine):
    """A client that sends anything. The model lists the issued states with their questions."""

    def __init__(self) -> None:
        super().__init__()
        shop.price = 5
        self.play = Player(server)
        self.issued = []

    @rule(price=st.integers(5, 7))
    def change_price(self, price: int) -> None:
        shop.price = price

    @rule(call=CALLS, answers=ANSWERS, capabilities=CAPABILITIES)
    def answer_in_advance(self, call: Any, answers: Any, capabilities: Any) -> None:
        self.send(Issued(None, call, {}), call, answers, capabilities)

    @rule(data=st.data(), answers=ANSWERS, capabilities=CAPABILITIES, ms=st.sampled_from([0, 29_000]))
    def answer_with_a_state(self, data: st.DataObject, answers: Any, capabilities: Any, ms: float) -> None:
        if self.issued:
            issued = data.draw(st.sampled_from(self.issued))
            call = data.draw(st.just(issued.call) | CALLS)
            self.play.remaining_ms = ms
            self.send(issued, call, answers, capabilities)

    @rule(data=st.data())
    def answer_as_asked(self, data: st.DataObject) -> None:
        if self.issued:
            issued = data.draw(st.sampled_from(self.issued))
            self.send(issued, issued.call, answers_to(issued.shown), {"elicitation": {}})

    @rule(call=CALLS, answers=ANSWERS)
    def answer_as_a_model(self, call: Any, answers: Any) -> None:
        with one_request(frozenset()):
            legacy(server).call(call[0], **call[1], input_responses=answers)

    def send(self, issued: Issued, call: tuple[str, dict[str, str]], answers: Any, capabilities: Any) -> None:
        self.play.capabilities = capabilities
        allowed = issued.answered_with(call, answers)
        with one_request(allowed):
            played = self.play.send(*call, answers, issued.state)
        result = played.message.get("result", {})
        if "requestState" in result:
            asked = {key: question["params"]["message"] for key, question in played.asked.items()}
            shown = {key: text.partition("\n\nThe previous")[0] for key, text in asked.items()}
            self.issued.append(Issued(result["requestState"], call, shown, allowed))


def answers_to(shown):
    texts = {"note", "to", "else", "account", "a/when", "b/when"}
    values = {key: {"value": "x" if key in texts else True} for key in shown}
    if "terms" in values:
        values["terms"] = {"agreed": True}
    return {key: {"action": "accept", "content": content} for key, content in values.items()}


TestAdversarialClient = AdversarialClient.TestCase
TestAdversarialClient.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
