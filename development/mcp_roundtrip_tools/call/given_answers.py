"""Answers that are given with the command, for scripts: ANSWERS, SAMPLE and folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.call.errors import usage_error
from mcp_roundtrip_tools.call.fields import Field, fields_of

MODEL: Final = "by-hand"
"""The model of a reply that a person wrote."""

Request = Mapping[str, Any]
Response = dict[str, Any]


@dataclass(frozen=True)
class GivenAnswers:
    """`by_key` are answers by the key of the question, `sample` a reply for each prompt, `roots` folders."""

    by_key: Mapping[str, Any] = field(default_factory=dict)
    sample: str | None = None
    roots: Sequence[Path] = ()

    def find(self, key: str, request: Request) -> Response | None:
        """Return the response to a request, or None if none is given. Raises CallFailed."""
        method, params = request.get("method"), request.get("params") or {}
        if key in self.by_key:
            return _response(key, method, params, self.by_key[key])
        if method == "sampling/createMessage" and self.sample is not None:
            return message_result(self.sample)
        if method == "roots/list" and self.roots:
            return roots_result(self.roots)
        return None


def parse_answers(text: str) -> Mapping[str, Any]:
    """Return the answers in ANSWERS. Raises CallFailed."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise usage_error(f"ANSWERS is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise usage_error('ANSWERS must be a JSON object of answers by key, as in \'{"place": "Tokyo"}\'.')
    return value


def message_result(text: str) -> Response:
    """Return a CreateMessageResult."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": MODEL, "stopReason": "endTurn"}


def roots_result(folders: Sequence[Path]) -> Response:
    """Return a ListRootsResult."""
    paths = [folder.resolve() for folder in folders]
    return {"roots": [{"uri": path.as_uri(), "name": path.name or "/"} for path in paths]}


def _response(key: str, method: Any, params: Mapping[str, Any], answer: Any) -> Response:
    if isinstance(answer, dict) and isinstance(answer.get("action"), str):
        return answer
    if method == "sampling/createMessage" and isinstance(answer, str):
        return message_result(answer)
    if method != "elicitation/create":
        if not isinstance(answer, dict):
            raise usage_error(f"ANSWERS: the answer to {key} ({method}) must be a JSON object.")
        return answer
    if params.get("requestedSchema") is None:
        return {"action": "accept" if answer is not False else "decline"}
    fields = fields_of(params["requestedSchema"])
    content = answer if isinstance(answer, dict) else _single(key, fields, answer)
    return {"action": "accept", "content": content}


def _single(key: str, fields: Sequence[Field], answer: Any) -> Response:
    """Return the content of a form with one field; a choice may be named by its title."""
    if len(fields) != 1:
        names = ", ".join(each.name for each in fields)
        raise usage_error(f"ANSWERS: the answer to {key} must be a JSON object with {names}.")
    [only] = fields
    titles = {option.title: option.value for option in only.options}
    return {only.name: titles.get(answer, answer) if isinstance(answer, str) else answer}
