"""Ask through the model, for clients that cannot be asked in the middle of a call.

The result of the call instructs the model to ask the user. The answers arrive in an argument of the next call
and are repeated in later ones, so no state passes through the model. The server cannot verify that the model
has asked anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.forms import SINGLE_FIELD
from mcp_roundtrip.server.model import Parameters

INPUT_RESPONSES: Final = "input_responses"
"""The argument in which the model passes on the answers of the user."""

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": (
        "What the user answered to the questions of an earlier call, by their keys. Leave it out until a "
        "result asks for it, and never make up an answer: ask the user."
    ),
    "additionalProperties": True,
}


def reject_reserved_parameter(name: str, parameters: Parameters) -> None:
    """Raise DefinitionError for a tool that has a parameter of this name itself."""
    if INPUT_RESPONSES in parameters.names:
        raise DefinitionError(
            f'{name}: legacy_questions="model" adds an argument {INPUT_RESPONSES!r}; give the parameter '
            "another name"
        )


def with_input_responses(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the optional argument for answers to an `inputSchema`."""
    return {**schema, "properties": {**schema.get("properties", {}), INPUT_RESPONSES: _SCHEMA}}


def read_input_responses(raw: Any) -> dict[str, Any]:
    """Return ElicitResults by key. Raises ArgumentsError.

    An answer is the content of the form or an ElicitResult. For a form with one field, its value is enough.
    """
    if not isinstance(raw, dict):
        raise ArgumentsError(f"{INPUT_RESPONSES}: Input should be an object")
    return {key: _elicit_result(answer) for key, answer in raw.items()}


def _elicit_result(answer: Any) -> dict[str, Any]:
    match answer:
        case {"action": "accept", "content": dict()} if len(answer) == 2:
            return dict(answer)
        case {"action": "decline" | "cancel"} if len(answer) == 1:
            return dict(answer)
        case dict():
            return {"action": "accept", "content": answer}
    return {"action": "accept", "content": {SINGLE_FIELD: answer}}


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
