"""The presenter "model": a text that has the model ask the user.

The result of the call instructs the model to ask the user. The answers arrive in an argument of the next call
and are repeated in later ones, so no state passes through the model. The server cannot verify that the model
has asked anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.forms.form import SINGLE_FIELD
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.server.model import CallParams, Reply, WireInputRequests
from mcp_roundtrip.server.options import INPUT_RESPONSES
from mcp_roundtrip.server.presenters.page import Repetition
from mcp_roundtrip.server.round import Round, asked_through
from mcp_roundtrip.tasks.model import Status


def ask(this_round: Round, requests: WireInputRequests) -> Reply:
    """Build the result that instructs the model to ask the user. `requests` are forms, by key."""
    text, asked = _prompt(this_round.call.name, requests), asked_through("model", requests)
    return this_round.unfinished_reply(text, "asked_through_model", asked=asked)


def ask_parked(this_round: Round, requests: WireInputRequests, again: Repetition) -> Reply:
    """Build the same result for a parked call, with its code and its status for programs."""
    text, meta = _prompt(again.tool, requests), again.meta(Status.INPUT_REQUIRED)
    if again.code is not None:
        text += f"\n\nThe arguments of that call have {again.code_text}, too."
    asked = asked_through("model", requests)
    return this_round.unfinished_reply(text, "asked_through_model", meta, asked=asked)


def take_responses(params: CallParams) -> CallParams:
    """Separate the answers that a model passed on from the tool's arguments. Raises ArgumentsError."""
    arguments = dict(params.arguments)
    responses = read_input_responses(arguments.pop(INPUT_RESPONSES, None))
    return replace(params, arguments=arguments, model_responses=responses)


def read_input_responses(raw: Any) -> dict[str, Any]:
    """Return ElicitResults by key; null counts as no answers. Raises ArgumentsError.

    An answer is the content of the form or an ElicitResult. For a form with one field, its value is enough.
    """
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ArgumentsError(f"{INPUT_RESPONSES}: Input should be an object")
    return {key: _elicit_result(answer) for key, answer in raw.items()}


def _elicit_result(answer: Any) -> dict[str, Any]:
    match answer:
        case {"action": "accept", "content": dict(content)} if _has_only(answer, "action", "content"):
            return {"action": "accept", "content": content}
        case {"action": "decline" | "cancel" as action} if _has_only(answer, "action"):
            return {"action": action}
        case dict():
            return {"action": "accept", "content": answer}
    return {"action": "accept", "content": {SINGLE_FIELD: answer}}


def _has_only(answer: Mapping[str, Any], *names: str) -> bool:
    """Return whether all other members are null, which counts as absent."""
    return all(member is None or name in names for name, member in answer.items())


def _prompt(tool: str, forms: WireInputRequests) -> str:
    """Return the text that the model reads."""
    questions = "\n\n".join(_question_text(key, **form["params"]) for key, form in forms.items())
    return (
        f"This is not finished: {tool} needs answers from the user. Ask the user, do not answer yourself. "
        f"Then call {tool} again with the same arguments and, in the argument {INPUT_RESPONSES}, an object "
        f"with the answers so far and these, by their keys.\n\n{questions}\n\n"
        'If the user does not want to answer, the answer is {"action": "decline"}.'
    )


def _question_text(key: str, message: str, requestedSchema: Mapping[str, Any], mode: str) -> str:
    schema = compact_json(requestedSchema)
    # A form with a field `action` could not be distinguished from an ElicitResult.
    is_ambiguous = "action" in requestedSchema["properties"]
    form = '{"action": "accept", "content": C}, where C is an object' if is_ambiguous else "an object"
    return f"{message}\nKey: {compact_json(key)}. The answer is {form} that fits this JSON Schema: {schema}"
