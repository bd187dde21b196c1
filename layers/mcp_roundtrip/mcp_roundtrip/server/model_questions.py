"""Ask through the model: the channel "model".

The result of the call instructs the model to ask the user. The answers arrive in an argument of the next call
and are repeated in later ones, so no state passes through the model. The server cannot verify that the model
has asked anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.forms.form import SINGLE_FIELD
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.model import CallParams, Reply
from mcp_roundtrip.server.options import INPUT_RESPONSES
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.unaskable import lost_effects, too_late_error


def ask(this_round: Round, requests: Mapping[str, Mapping[str, Any]], journal: Journal) -> Reply:
    """Build the result that instructs the model to ask the user. `requests` are forms, by key.

    The next call runs from its start, so it is an error if this one has run a step before the questions.
    """
    call = this_round.call
    if done := lost_effects(journal):
        observer = call.context.ports.observer
        observer.record("asked_after_steps", **call.log_identity, asked=sorted(requests), after=done)
        return this_round.error_reply(too_late_error(call), "not_asked")
    prompt = model_prompt(call.name, {key: request["params"] for key, request in requests.items()})
    result = results.tool_result(call.server_info, [results.text_content(prompt)], {})
    return this_round.reply(result, "asked_through_model", asked=sorted(requests))


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


def model_prompt(tool: str, forms: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text that the model reads. `forms` are the params of the elicitations by key."""
    questions = "\n\n".join(_question_text(key, **form) for key, form in forms.items())
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
