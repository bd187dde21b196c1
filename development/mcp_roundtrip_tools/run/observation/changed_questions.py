"""Questions that changed since they were asked before, with both texts, which the responses of the run have.

The functions log the key of such a question and no text, because a text may quote arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Final

from mcp_roundtrip.engine.questions import own_message
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.server.options import META_QUESTIONS
from mcp_roundtrip_tools.run.execution.log_text import is_library_event, json_object
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    Root,
    member,
    request_message,
    response_message,
    walk,
)

MAX_TEXT: Final = 80
"""The characters of a text around the first difference."""

_BEFORE_DIFFERENCE: Final = 40

_REPEATED_KEY: Final = re.compile(r"(.+)~[0-9]+")
"""The wire key of a task's question that is asked again; it begins with the key of the code."""

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
    """Note the questions that changed, when the response that asks them is sent."""
    if isinstance(event, Ended) and isinstance(event.root, HttpExchange):
        exchange = event.root
        subject, _ = _call(exchange)
        for changed in changed_questions(exchange, recorder):
            recorder.note(f"{subject}: {changed.describe()}" if subject else changed.describe())


def changed_questions(exchange: HttpExchange, recorder: RunRecorder) -> tuple[ChangedQuestion, ...]:
    """Return the questions of a response that were asked in another way before."""
    asked = _requests(exchange)
    if not asked:
        return tuple(_changed_in_parked_call(exchange, recorder))
    task_id = member(response_message(exchange), "result", "taskId")
    if isinstance(task_id, str):
        return tuple(_changed_in_task(exchange, task_id, recorder))
    keys = asked.keys() & _logged_keys(exchange)
    return tuple(_changed_in_rounds(exchange, sorted(keys), recorder)) if keys else ()


def open_changed_questions(task_id: str, recorder: RunRecorder) -> tuple[ChangedQuestion, ...]:
    """Return the questions of a task's last poll that were asked in another way before."""
    asking: HttpExchange | None = None  # the first poll with these questions
    for exchange in reversed(recorder.exchanges()):
        if task_id.encode() not in exchange.response_body or not (asked := _requests(exchange)):
            continue
        if asking is not None and asked.keys() != _requests(asking).keys():
            break
        asking = exchange
    return () if asking is None else changed_questions(asking, recorder)


def _changed_in_rounds(
    exchange: HttpExchange, keys: list[str], recorder: RunRecorder
) -> Iterator[ChangedQuestion]:
    rounds = [*_rounds_before(exchange, recorder)]
    for key in keys:
        before = next((_requests(each)[key] for each in rounds if key in _requests(each)), None)
        if before is not None:
            is_repeated = key in _logged_keys(rounds[0])
            yield _compare(key, before, _requests(exchange)[key], is_repeated=is_repeated)


def _rounds_before(exchange: HttpExchange, recorder: RunRecorder) -> Iterator[HttpExchange]:
    """Yield the earlier rounds of a call, the newest first: each issued the state that the next one sent."""
    state = member(request_message(exchange), "params", "requestState")
    for other in _earlier(exchange, recorder):
        if not isinstance(state, str) or not state:
            return
        if state.encode("utf-8", "replace") in other.response_body:
            yield other
            state = member(request_message(other), "params", "requestState")


def _earlier(exchange: HttpExchange, recorder: RunRecorder) -> Iterator[HttpExchange]:
    """Yield the requests before this one, the newest first."""
    found = dropwhile(lambda each: each.id != exchange.id, reversed(recorder.exchanges()))
    next(found, None)
    yield from found


def _changed_in_task(
    exchange: HttpExchange, task_id: str, recorder: RunRecorder
) -> Iterator[ChangedQuestion]:
    """Yield the questions that this poll is the first to ask, and whose change their worker logged."""
    asked = _requests(exchange)
    new = {wire: found[1] for wire in asked if (found := _REPEATED_KEY.fullmatch(wire))}
    if not new:
        return
    name = task_id.encode("utf-8", "replace")
    others = (each for each in _earlier(exchange, recorder) if name in each.response_body)
    earlier = [requests for each in others if (requests := _requests(each))]
    workers = (each for each in recorder.background_invocations() if name in each.payload)
    logged = [_logged_keys(each) for each in workers if each.started_at_ms <= exchange.started_at_ms]
    for wire, key in new.items():
        before = _request_before(wire, key, earlier)
        if before is not None and logged and key in logged[-1]:
            yield _compare(key, before, asked[wire], is_repeated=any(key in each for each in logged[-2:-1]))


def _request_before(wire: str, key: str, earlier: list[dict[str, Any]]) -> Any:
    """Return the request before, None if an earlier poll has asked the same one."""
    for requests in earlier:
        if wire in requests:
            return None
        for other, request in requests.items():
            if other == key or other.rpartition("~")[0] == key:
                return request
    return None


def _changed_in_parked_call(exchange: HttpExchange, recorder: RunRecorder) -> Iterator[ChangedQuestion]:
    """Yield the questions that a page or a view asks in another way than before.

    The text for the model lists their messages. A call that was repeated before the user answered has the
    same ones, and its tool did not run.
    """
    keys, call, asked = _logged_keys(exchange), _call(exchange), _listed_messages(exchange)
    if not keys or not asked:
        return
    others = [each for each in _earlier(exchange, recorder) if _call(each) == call]
    before = next((found for each in others if (found := _listed_messages(each)) not in ("", asked)), None)
    if before is None:
        return
    logged = [_logged_keys(each) for each in others if _listed_messages(each) == before]
    for key in sorted(keys):
        first, second = _shorten_alike(before, asked)
        yield ChangedQuestion(key, first, second, is_repeated=any(key in each for each in logged))


def _call(exchange: HttpExchange) -> tuple[Any, Any]:
    """Return what is called, and with which arguments. A view calls the answer tool."""
    result = response_message(exchange).get("result")
    source = member(result, "_meta", META_QUESTIONS) or request_message(exchange).get("params")
    tool = member(source, "tool") or member(source, "name")
    return tool, member(source, "arguments")


def _listed_messages(exchange: HttpExchange) -> str:
    """Return the messages that the text for the model lists, in one line; empty if it lists none."""
    content = member(response_message(exchange), "result", "content")
    text = member(content[0], "text") if isinstance(content, list) and content else None
    lines = text.split("\n") if isinstance(text, str) else []
    return " ".join(line[2:] for line in lines if line.startswith("- "))


def _requests(exchange: HttpExchange) -> dict[str, Any]:
    """Return the input requests of a response by their keys on the wire."""
    requests = member(response_message(exchange), "result", "inputRequests")
    return dict(requests) if isinstance(requests, Mapping) else {}


def _logged_keys(root: Root) -> frozenset[str]:
    """Return the keys of the questions whose change the functions logged."""
    documents = (json_object(line.text) for each in walk(root) for line in each.log_lines)
    return frozenset(
        str(each.get("key"))
        for each in documents
        if each and is_library_event(each) and each["message"] == "question_changed"
    )


def _compare(key: str, before: Any, after: Any, *, is_repeated: bool) -> ChangedQuestion:
    """Compare the messages of two requests; all their parameters if the messages are equal or absent."""
    texts = [_message(each) for each in (before, after)]
    if not all(texts) or texts[0] == texts[1]:
        texts = [compact_json(member(each, "params")) for each in (before, after)]
    first, second = _shorten_alike(*texts)
    return ChangedQuestion(key, first, second, is_repeated)


def _message(request: Any) -> str:
    return " ".join(own_message(request).split()) if member(request, "params", "message") else ""


def _shorten_alike(one: str, other: str) -> tuple[str, str]:
    """Return the parts of two texts around their first difference."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((at for at, (first, second) in pairs if first != second), 0)
    start = max(0, same - _BEFORE_DIFFERENCE)
    return _shorten(one, start), _shorten(other, start)


def _shorten(text: str, start: int) -> str:
    shown = text[start : start + MAX_TEXT]
    return f"{'…' if start else ''}{shown}{'…' if start + MAX_TEXT < len(text) else ''}"
