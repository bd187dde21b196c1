"""What a client may do with a state besides sending it once, with the answers, as the same caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from corpus.conversation import Conversation

Params = dict[str, Any]
Response = dict[str, Any]


def _declined(params: Params) -> Params:
    responses = {key: {"action": "decline"} for key in params.get("inputResponses", {})}
    return {**params, **({"inputResponses": responses} if responses else {})}


def _repeated(talk: Conversation, params: Params) -> Response:
    talk.call(**params)
    return talk.call(**params)


def _other_answers(talk: Conversation, params: Params) -> Response:
    response = talk.call(**params)
    talk.call(**_declined(params))
    return response


def _after_the_end(talk: Conversation, params: Params) -> Response:
    response = talk.go_on(talk.call(**params))
    talk.call(**params)
    return response


def _changed_state(talk: Conversation, params: Params) -> Response:
    state = params["requestState"]
    middle = len(state) // 2
    other = "B" if state[middle] == "A" else "A"
    talk.call(**{**params, "requestState": state[:middle] + other + state[middle + 1 :]})
    return talk.call(**params)


def _after(seconds: float) -> Callable[[Conversation, Params], Response]:
    def deviate(talk: Conversation, params: Params) -> Response:
        talk.world.clock.sleep(seconds)
        return talk.call(**params)

    return deviate


def _as_bob(talk: Conversation, params: Params) -> Response:
    alice = talk.client
    talk.client = alice.another(person="bob")
    talk.call(**params)
    talk.client = alice
    return talk.call(**params)


def _other_arguments(talk: Conversation, params: Params) -> Response:
    if talk.kind == "resource":
        return talk.call(**{**params, "uri": "play://invoices"})
    return talk.call(**{**params, "arguments": {"subject": "invoices"}})


def _unasked(talk: Conversation, params: Params) -> Response:
    responses = {**params.get("inputResponses", {}), "unasked": {"action": "accept", "content": {"value": 1}}}
    return talk.call(**{**params, "inputResponses": responses})


def _without(member: str) -> Callable[[Conversation, Params], Response]:
    def deviate(talk: Conversation, params: Params) -> Response:
        return talk.call(**{name: value for name, value in params.items() if name != member})

    return deviate


def _with(**changes: Any) -> Callable[[Conversation, Params], Response]:
    return lambda talk, params: talk.call(**{**params, **changes})


def _changed_question(talk: Conversation, params: Params) -> Response:
    talk.world.notes["again"] = " Think twice."
    return talk.call(**params)


def _another_environment(talk: Conversation, params: Params) -> Response:
    talk.client.restart()
    return talk.call(**params)


DEVIATIONS: Final[Mapping[str, Callable[[Conversation, Params], Response]]] = {
    "repeats the round": _repeated,
    "sends other answers afterwards": _other_answers,
    "repeats the round after the end": _after_the_end,
    "sends a changed state": _changed_state,
    "sends an unsigned state": _with(requestState="eyJhbGciOiJub25lIn0.e30."),
    "answers after 601 s": _after(601),
    "answers after 599 s": _after(599),
    "sends the state as another caller": _as_bob,
    "sends the state with other arguments": _other_arguments,
    "answers what was not asked": _unasked,
    "leaves out the answers": _without("inputResponses"),
    "leaves out the state": _without("requestState"),
    "sends a number as the state": _with(requestState=1),
    "sends a list of answers": _with(inputResponses=[]),
    "answers a question that has changed": _changed_question,
    "reaches another environment": _another_environment,
}
"""What a client does with the first state that it receives -> how."""
