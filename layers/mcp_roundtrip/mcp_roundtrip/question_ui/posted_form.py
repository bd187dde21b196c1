"""The form of the questions that one link asks, and the answers in the body that a browser posts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import UNSET, Struct, field

from mcp_roundtrip.protocol.constants import SINGLE_FIELD
from mcp_roundtrip.protocol.strict_json import digest
from mcp_roundtrip.question_ui.fields import FieldError, FormField, make_field

MAX_FORM_BYTES: Final = 1_000_000
MAX_FORM_VALUES: Final = 20_000
"""Limits of a form's body. Answers are stored in items of at most 400 KB."""

Values = Mapping[str, tuple[str, ...]]
"""The values of each control by its name, in the order of the body."""

_MALFORMED_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

ACTION: Final = "action"
"""The name of the buttons. The value of the pressed one is the action of every answer."""

VERSION: Final = "version"
"""The name of the hidden input with the digest of the questions that the user sees."""

ACCEPT, DECLINE, CANCEL = "accept", "decline", "cancel"


class MalformedForm(ValueError):
    """A body is not the form of a browser. The text quotes nothing from it."""


class PageQuestion(Struct, frozen=True):
    """One elicitation with its wire key. A form has fields, a URL question has a `url`.

    `action_name`: the control for answer or decline, on a page with several questions.
    """

    key: str
    message: str
    fields: tuple[FormField, ...] = ()
    url: str | None = None
    action_name: str = ""

    @property
    def is_single_field(self) -> bool:
        """Whether the message is the label of the only field."""
        return len(self.fields) == 1 and self.fields[0].title == self.message


class Answers(Struct, frozen=True):
    """The answers (ElicitResult) by wire key, or the errors by the name of a field."""

    responses: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


def make_questions(requests: Mapping[str, Mapping[str, Any]]) -> tuple[PageQuestion, ...]:
    """Return the questions of `elicitation/create` requests by wire key, in their order."""
    several = len(requests) > 1
    return tuple(
        _make_question(number, key, request["params"], several=several)
        for number, (key, request) in enumerate(requests.items())
    )


def _make_question(number: int, key: str, params: Mapping[str, Any], *, several: bool) -> PageQuestion:
    message = str(params["message"])
    action_name = f"{number}.{ACTION}" if several else ""
    if params.get("mode") == "url":
        return PageQuestion(key, message, url=str(params["url"]), action_name=action_name)
    schema = params["requestedSchema"]
    required = schema.get("required", ())
    properties = schema["properties"]
    fallback = message if properties.keys() == {SINGLE_FIELD} else ""
    fields = (
        make_field(f"{number}.{position}", name, member, required=name in required, fallback_title=fallback)
        for position, (name, member) in enumerate(properties.items())
    )
    return PageQuestion(key, message, tuple(fields), action_name=action_name)


def questions_version(requests: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a digest of the requests, so that an answer cannot count for another question."""
    shown = [[key, request["params"]] for key, request in requests.items()]
    return digest("mcp-rs/v1/questions", shown, size=12)


def initial_values(questions: Sequence[PageQuestion]) -> Values:
    """Return the values that show the defaults."""
    return {each.name: each.initial() for question in questions for each in question.fields}


def read_answers(questions: Sequence[PageQuestion], posted: Values) -> Answers:
    """Return the answers in a posted form, or the errors of its fields. Raises MalformedForm."""
    action = only_value(posted, ACTION)
    if action not in (ACCEPT, DECLINE, CANCEL):
        raise MalformedForm("no action")
    if action != ACCEPT:
        return Answers({each.key: {"action": action} for each in questions})
    responses: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for each in questions:
        chosen = posted.get(each.action_name, ())
        if each.action_name and chosen == (DECLINE,):
            responses[each.key] = {"action": DECLINE}
        elif each.url is not None:
            if each.action_name and chosen != (ACCEPT,):
                errors[each.action_name] = "Choose whether you have finished."
            responses[each.key] = {"action": ACCEPT}
        else:
            content = _read_content(each.fields, posted, errors)
            responses[each.key] = {"action": ACCEPT, "content": content}
    return Answers({}, errors) if errors else Answers(responses)


def _read_content(fields: Sequence[FormField], posted: Values, errors: dict[str, str]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for each in fields:
        try:
            value = each.read(posted.get(each.name, ()))
        except FieldError as error:
            errors[each.name] = str(error)
            continue
        if value is not UNSET:
            content[each.key] = value
    return content


def parse_form(body: str | bytes) -> Values:
    """Return the values in a form body (application/x-www-form-urlencoded). Raises MalformedForm."""
    try:
        text = (body.encode() if isinstance(body, str) else body).decode()
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_VALUES)
    except ValueError:  # UnicodeError, too
        raise MalformedForm("not UTF-8, or too many values") from None
    if _MALFORMED_ESCAPE.search(text):
        raise MalformedForm("malformed percent-encoding")
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(_unix(name), []).append(_unix(value))
    return {name: tuple(values) for name, values in found.items()}


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def only_value(values: Values, name: str) -> str:
    """Return the only value of `name`; empty if it is missing or repeated."""
    found = values.get(name, ())
    return found[0] if len(found) == 1 else ""
