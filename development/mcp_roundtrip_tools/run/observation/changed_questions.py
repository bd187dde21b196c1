"""Questions that changed since they were asked before, with both texts, which the responses of the run have.

The functions log the key of such a question and no text, because a text may quote arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Final

from mcp_roundtrip.engine.question_channels import own_message
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    member,
    request_message,
    response_message,
)

MAX_TEXT: Final = 80
"""The characters of a text around the first difference."""

_BEFORE_DIFFERENCE: Final = 40

_REMEDY: Final = (
    "No answer to it counts. Use ctx.now for the time, ctx.step for other values, and sorted() for a set."
)


@dataclass(frozen=True, slots=True)
class ChangedQuestion:
    """`before` and `after` are one line each. `is_repeated`: it had changed in the round before, too."""

    key: str
    before: str
    after: str
    is_repeated: bool

    def describe(self) -> str:
        """Return what happened in a line; if the question changes again, a second line has the remedy."""
        texts = f"{self.before!r} → {self.after!r}"
        if self.is_repeated:
            return f"question {self.key!r} is different in every round: {texts}\n{_REMEDY}"
        return f"question {self.key!r} has changed: {texts}. The answer to the earlier one does not count."


def note_changed_questions(event: Event, recorder: RunRecorder) -> None:
    """Note the questions that changed, when the first response is sent that asks them."""
    if isinstance(event, Ended) and isinstance(event.root, HttpExchange):
        name = member(request_message(event.root), "params", "name")
        for changed, is_new in _compare_all(event.root, recorder):
            if is_new:
                recorder.note(f"{name}: {changed.describe()}" if name else changed.describe())


def changed_questions(exchange: HttpExchange, recorder: RunRecorder) -> tuple[ChangedQuestion, ...]:
    """Return the questions of a response that were asked in another way before."""
    return tuple(changed for changed, _ in _compare_all(exchange, recorder))


def open_changed_questions(task_id: str, recorder: RunRecorder) -> tuple[ChangedQuestion, ...]:
    """Return the questions of a task's last poll that were asked in another way before."""
    polls = (each for each in reversed(recorder.exchanges()) if task_id.encode() in each.response_body)
    asking = next((each for each in polls if _requests(each)), None)
    return () if asking is None else changed_questions(asking, recorder)


Requests = Mapping[str, Any]
"""The input requests of a response by their keys on the wire."""


def _requests(exchange: HttpExchange) -> Requests:
    requests = member(response_message(exchange), "result", "inputRequests")
    return requests if isinstance(requests, Mapping) else {}


def _compare_all(exchange: HttpExchange, recorder: RunRecorder) -> Iterator[tuple[ChangedQuestion, bool]]:
    """Yield the questions that changed, and whether this is the first response that asks them so."""
    if not (asked := _requests(exchange)):
        return
    task_id = member(response_message(exchange), "result", "taskId")
    if is_task := isinstance(task_id, str):
        earlier = [each for each in _earlier(exchange, recorder) if _contains(each.response_body, task_id)]
    else:
        earlier = [*_rounds_before(exchange, recorder)]
    history = [_requests(each) for each in earlier]
    for wire_key, request in asked.items():
        # The polls of a task repeat its requests. A question that is asked again gets another wire key.
        key = wire_key.partition("~")[0]
        before = [*_asked_before(key, wire_key if is_task else None, history)]
        if before and _identity(before[0]) != _identity(request):
            is_repeated = len(before) > 1 and _identity(before[0]) != _identity(before[1])
            changed = ChangedQuestion(key, *_texts(before[0], request), is_repeated)
            yield changed, not is_task or not any(wire_key in each for each in history)


def _asked_before(key: str, wire_key: str | None, history: list[Requests]) -> Iterator[Any]:
    """Yield the earlier requests for a key, the newest first; with `wire_key`, each other wire key once."""
    seen = {wire_key}
    for requests in history:
        for other, request in requests.items():
            if other.partition("~")[0] == key and other not in seen:
                yield request
                seen |= {other} if wire_key is not None else set()


def _rounds_before(exchange: HttpExchange, recorder: RunRecorder) -> Iterator[HttpExchange]:
    """Yield the earlier rounds of a call, the newest first: each issued the state that the next one sent."""
    state = member(request_message(exchange), "params", "requestState")
    for other in _earlier(exchange, recorder):
        if not isinstance(state, str) or not state:
            return
        if _contains(other.response_body, state):
            yield other
            state = member(request_message(other), "params", "requestState")


def _earlier(exchange: HttpExchange, recorder: RunRecorder) -> Iterator[HttpExchange]:
    """Yield the requests before this one, the newest first."""
    found = dropwhile(lambda each: each is not exchange, reversed(recorder.exchanges()))
    next(found, None)
    yield from found


def _contains(body: bytes, text: str) -> bool:
    return text.encode("utf-8", "replace") in body


def _identity(request: Any) -> tuple[str, str]:
    """Return what makes a question another one: its message without the reason of a refusal, and the rest."""
    params = member(request, "params")
    rest = (
        {name: params[name] for name in params if name != "message"} if isinstance(params, Mapping) else None
    )
    return _message(request), compact_json(rest)


def _message(request: Any) -> str:
    return " ".join(own_message(request).split()) if member(request, "params", "message") else ""


def _texts(before: Any, after: Any) -> tuple[str, str]:
    """Return the messages around their first difference; all parameters if they are equal or absent."""
    one, other = _message(before), _message(after)
    if not one or not other or one == other:
        one, other = (compact_json(member(each, "params")) for each in (before, after))
    pairs = enumerate(zip(one, other, strict=False))
    same = next((at for at, (first, second) in pairs if first != second), 0)
    start = max(0, same - _BEFORE_DIFFERENCE)
    return _shorten(one, start), _shorten(other, start)


def _shorten(text: str, start: int) -> str:
    shown = text[start : start + MAX_TEXT]
    return f"{'…' if start else ''}{shown}{'…' if start + MAX_TEXT < len(text) else ''}"
