"""The common base of `Round` and `PlayedTask`: answers, questions, results and errors of a call."""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from difflib import unified_diff
from typing import Any, Final, NoReturn
from warnings import warn

from mcp_roundtrip.errors import ToolError

_RESPONSE_MEMBERS = {"action", "content"}

_MEMBERS: Final = "`.text` or `.structured` for a tool, `.messages` for a prompt, `.contents` for a resource"


def input_response(request: Mapping[str, Any] | None, given: Any) -> Any:
    """Return the entry of `inputResponses` for a request; `request` is None for a key that is not asked.

    `given` is a whole response, such as ``{"action": "decline"}``; the content of a form: a dict, or the
    value or the title of a single field; the text of a sampled message; or a result for sampling and roots.
    For a URL, any value but False means consent.
    """
    if request is None or (isinstance(given, Mapping) and is_response(given)):
        return given
    params = request.get("params") or {}
    match request["method"]:
        case "sampling/createMessage" if isinstance(given, str):
            return sampled_message(given)
        case "elicitation/create" if params.get("mode") == "url":
            return {"action": "decline" if given is False else "accept"}
        case "elicitation/create":
            content = given if isinstance(given, Mapping) else _single(params["requestedSchema"], given)
            return {"action": "accept", "content": content}
    return given


def is_response(given: Mapping[str, Any]) -> bool:
    """Return whether an answer is a whole response of an elicitation, and not the content of a form."""
    return given.get("action") in ("accept", "decline", "cancel") and given.keys() <= _RESPONSE_MEMBERS


def sampled_message(text: str) -> dict[str, Any]:
    """Return the result of sampling with this text, which a person wrote."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "by-hand", "stopReason": "endTurn"}


def choices_of(schema: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the values that a schema allows, each with its title; none if it allows every value."""
    if isinstance(schema.get("enum"), list):
        titles = schema.get("enumNames") or map(str, schema["enum"])
        return list(zip(schema["enum"], titles, strict=False))
    branches = schema.get("oneOf") or schema.get("anyOf") or ()
    if not all(isinstance(each, Mapping) and "const" in each for each in branches):
        return []
    return [(each["const"], str(each.get("title", each["const"]))) for each in branches]


def _single(schema: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return the content of a form with one field. Raises ValueError for one with several."""
    properties = schema.get("properties", {})
    if len(properties) > 1:
        raise ValueError(f"the answer must be an object with {', '.join(properties)}")
    [(name, field)] = properties.items() or [("value", {})]
    values = {title: value for value, title in choices_of(field)}
    return {name: values.get(given, given) if isinstance(given, str) else given}


__tracebackhide__ = True  # pytest shows the line of the test

DECLINE: Final[Mapping[str, Any]] = {"action": "decline"}
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}


class CallFailed(AssertionError):
    """The call lacks what the test reads. The cause is the exception that the tool raised, if any."""


class NotReplayable(AssertionError):
    """A replay had another outcome: the tool is not deterministic. The message contains a diff."""


class QuestionChanged(UserWarning):
    """A question differs from that of the previous round, so its answer did not count."""


class PlayedCall(ABC):
    """The current state of a call."""

    __slots__ = ()

    @property
    @abstractmethod
    def result(self) -> Mapping[str, Any]:
        """The result. Raises CallFailed if there is none."""

    @property
    @abstractmethod
    def asked(self) -> Mapping[str, Mapping[str, Any]]:
        """The questions by their key on the wire; empty if nothing is asked."""

    @property
    @abstractmethod
    def raised(self) -> BaseException | None:
        """The exception that ended the tool, if any."""

    @abstractmethod
    def describe_state(self) -> str:
        """Return the state of the call for an error message."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe_state()}>"

    def question(self, key: str) -> str:
        """Return the message of an elicitation that is asked, by the author's key or the key on the wire.

        Raises CallFailed.
        """
        request = self.asked.get(self._wire_key(key))
        if request is None:
            self.fail(f"{key!r} is not asked: {self.describe_state()}")
        message = request.get("params", {}).get("message")
        if message is None:
            self.fail(f"{key!r} is a request {request['method']}, which has no message: read `.asked`")
        return str(message)

    def _wire_key(self, key: str) -> str:
        """Return the key on the wire of a question: "key~2" if it was asked again outside of rounds."""
        return next((asked for asked in self.asked if key in (asked, asked.partition("~")[0])), key)

    def _responses(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return `inputResponses` for answers by key. Raises CallFailed for one that a form cannot hold."""
        responses = {}
        for key, given in answers.items():
            wire_key = self._wire_key(key)
            try:
                responses[wire_key] = input_response(self.asked[wire_key], given)
            except ValueError as error:
                self.fail(f"{key!r}: {error}")
        return responses

    @property
    def text(self) -> str:
        """The text blocks of a call that completed or raised ToolError. Raises CallFailed otherwise."""
        result = self._completed("content")
        if result.get("isError") and not isinstance(self.raised, ToolError | None):
            self.fail(f"the tool returned no text: {self.describe_state()}")
        return joined_text(result)

    @property
    def structured(self) -> Any:
        """The structuredContent of a call that completed without an error. Raises CallFailed."""
        result = self._completed("content")
        if result.get("isError"):
            self.fail(f"the call has no structuredContent: {self.describe_state()}")
        if "structuredContent" not in result:
            self.fail("the tool returns no structuredContent: use `.text`, or annotate its return type")
        return result["structuredContent"]

    @property
    def failed(self) -> bool:
        """Whether the result is a tool error."""
        return bool(self.result.get("isError"))

    def fail(self, text: str) -> NoReturn:
        """Raise CallFailed with the tool's exception as its cause."""
        raise CallFailed(text) from self.raised

    def _completed(self, member: str) -> Mapping[str, Any]:
        """Return the result of a call that has ended. Raises CallFailed if it has no such member."""
        if self.result.get("resultType", "complete") != "complete":  # earlier versions have none
            self.fail(f"the call has not ended: {self.describe_state()}")
        if member not in self.result:
            self.fail(f"the result has no {member}: use {_MEMBERS}")
        return self.result


def joined_text(result: Mapping[str, Any]) -> str:
    """Return the text blocks of a CallToolResult."""
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def describe_result(result: Mapping[str, Any], raised: BaseException | None) -> str:
    """Return the state of a call with this result."""
    if requests := result.get("inputRequests"):
        return f"it asks {describe_questions(requests)}"
    match result.get("resultType"):
        case "input_required":
            return "it returned a checkpoint"
        case "task":
            return f"it became a task, which `.task` runs: {result['taskId']}"
    if not result.get("isError"):
        shown = {name: member for name, member in result.items() if name not in ("_meta", "resultType")}
        return f"it completed with {shown!r:.500}"
    if raised is None or isinstance(raised, ToolError):
        return f"it failed: {joined_text(result)}"
    return f"it raised {type(raised).__name__}: {raised}"


def describe_questions(requests: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the keys and messages of InputRequests."""
    said = {key: request.get("params", {}).get("message") for key, request in requests.items()}
    return ", ".join(repr(key) + (f" ({message!r})" if message else "") for key, message in said.items())


def describe_unasked_answers(asked: Collection[str], answered: Iterable[str]) -> str:
    """Return the message for answers to questions that were not asked."""
    return f"asked: {', '.join(asked) or 'nothing'}; you answered: {', '.join(answered)}"


def json_diff(before: Any, after: Any, names: tuple[str, str]) -> str:
    """Return a diff of JSON data."""
    old, new = (json.dumps(each, indent=2, ensure_ascii=False).splitlines() for each in (before, after))
    return "\n".join(unified_diff(old, new, *names, lineterm="", n=2))


def warn_of_changes(
    changed: Iterable[str], before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> None:
    """Warn of the questions in `after` that differ from those in `before`."""
    for key in changed:
        shown = json_diff(before.get(key), after.get(key), ("asked before", "asked now"))
        text = f"question {key!r} changed, and an answer to the earlier one does not count:\n{shown}"
        warn(QuestionChanged(text), stacklevel=4)
