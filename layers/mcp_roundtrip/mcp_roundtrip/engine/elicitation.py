"""Form and URL elicitation, and how a call waits for a URL interaction that the user agreed to.

- A round calls `done` repeatedly for as long as it lasts, and then asks again.
- A call that can become a task becomes one at once. The task sleeps between the calls of `done`.
- An elicitation with `poll_interval_ms=None` is not polled: `done` is called once each time the user agrees.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from inspect import isclass, iscoroutine
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, overload

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from mcp_roundtrip.arguments.plain_json_types import JsonForm, form_of
from mcp_roundtrip.arguments.signature import type_name
from mcp_roundtrip.engine.deadline import ANSWER_WAIT_MS
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.pass_state import MAX_INLINE_PAUSE_MS, TASK_TTL_MS, Run
from mcp_roundtrip.engine.question_channels import DEFAULT_POLL_INTERVAL_MS, Channel, InputRequest, Question
from mcp_roundtrip.errors import DefinitionError, ElicitationCancelled, ElicitationDeclined, UsageError
from mcp_roundtrip.protocol import capabilities
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.constants import URI_REST, URI_SCHEME
from mcp_roundtrip.protocol.resource_uris import percent_encode

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.elicitation_form import Form

T = TypeVar("T")

MIN_POLL_INTERVAL_MS: Final = 1_000

_ABSOLUTE_URL: Final = re.compile(rf"{URI_SCHEME}//(?![/?#:]){URI_REST}")


class _Elicitation(Question[T]):
    method: ClassVar[str] = "elicitation/create"
    message: str

    def __post_init__(self) -> None:
        if not isinstance(self.message, str):
            kind = type(self.message).__name__
            raise DefinitionError(f"question {self.key!r}: the message is {kind}; pass a str")

    def journal_value(self, raw: Any) -> Any:
        return {name: raw[name] for name in ("action", "content") if name in raw}

    def _accepted(self, raw: Any) -> Any:
        if raw["action"] == "decline":
            raise ElicitationDeclined(self.key)
        if raw["action"] == "cancel":
            raise ElicitationCancelled(self.key)
        return raw.get("content")


class Elicit(_Elicitation[T], Struct, frozen=True):
    """Ask the user to fill in a form.

    `model` is a flat pydantic model or dataclass, or the type of a single field. With `user_only`, an answer
    counts only after the client was sent this question with this text, and never if a model gives it. None
    means True for a confirmation: all required fields, or all fields if none is required, are booleans.
    """

    key: str
    message: str
    model: type[T]
    default: T | UnsetType = UNSET
    user_only: bool | None = None

    if TYPE_CHECKING:  # to type checkers, a Literal, a union or an Annotated is no `type[T]`

        @overload
        def __init__(
            self,
            key: str,
            message: str,
            model: type[T],
            default: T | UnsetType = ...,
            user_only: bool | None = ...,
        ) -> None: ...
        @overload
        def __init__(
            self: Elicit[Any], key: str, message: str, model: Any, default: Any = ..., user_only: Any = ...
        ) -> None: ...
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __post_init__(self) -> None:
        _Elicitation.__post_init__(self)
        if self.default is not UNSET and not _is_valid_default(self.default, self.model):
            raise DefinitionError(
                f"question {self.key!r}: default= is {type(self.default).__name__}, and the answer is "
                f"{type_name(self.model)}; pass a value of that type, or None"
            )

    def _form(self) -> Form | JsonForm:
        try:
            return form_of(self.model)
        except DefinitionError as error:
            raise DefinitionError(f"question {self.key!r}: {error}") from None

    def is_user_only(self) -> bool:
        if self.user_only is not None:
            return self.user_only
        schema = self._form().requested_schema
        names = schema.get("required") or schema["properties"]
        return bool(names) and all(schema["properties"][name]["type"] == "boolean" for name in names)

    def params(self) -> dict[str, Any]:
        return {
            "mode": "form",
            "message": self.message,
            "requestedSchema": self._form().requested_schema,
        }

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ELICITATION_FORM,)

    def parse_response(self, raw: Any) -> T:
        value: T = self._form().parse(self._accepted(raw))
        return value


def _is_valid_default(default: Any, model: Any) -> bool:
    """Return whether a tool that expects a `model` can use this default. None is always allowed."""
    is_typed_dict = hasattr(model, "__required_keys__")  # which isinstance() refuses
    if default is None or not isclass(model) or is_typed_dict:
        return True
    return isinstance(default, (int, float) if model is float else model)


class ElicitUrl(_Elicitation[None], Struct, frozen=True):
    """Send the user to a URL, and wait until `done` returns True.

    `done` is called every `poll_interval_ms` milliseconds (at least 1,000) for as long as the round lasts, or
    once in each round if that is None.
    """

    key: str
    message: str
    url: str
    done: Callable[[], bool | Awaitable[bool]]
    default: UnsetType | None = UNSET
    poll_interval_ms: int | None = DEFAULT_POLL_INTERVAL_MS

    def __post_init__(self) -> None:
        _Elicitation.__post_init__(self)
        if not isinstance(self.url, str) or not _ABSOLUTE_URL.fullmatch(self.url):
            raise DefinitionError(
                f"question {self.key!r}: {self.url!r:.200} is not a URL; write an absolute one such as "
                "'https://example.com/pay', and percent-encode what you insert"
            )
        if not callable(self.done):
            raise DefinitionError(
                f"question {self.key!r}: done= is {type(self.done).__name__}; pass a function without "
                "parameters, such as `done=lambda: is_paid(order)`"
            )
        interval_ms = self.poll_interval_ms
        if interval_ms is not None and (type(interval_ms) is not int or interval_ms < MIN_POLL_INTERVAL_MS):
            raise DefinitionError(
                f"question {self.key!r}: poll_interval_ms={interval_ms!r:.100} is not an int of at least "
                f"{MIN_POLL_INTERVAL_MS}; pass one, or None to call done() once in each round"
            )

    def params(self) -> dict[str, Any]:
        return {"mode": "url", "message": self.message, "url": percent_encode(self.url)}

    def needs(self) -> Sequence[CapabilityPath]:
        return (capabilities.ELICITATION_URL,)

    def parse_response(self, raw: Any) -> None:
        self._accepted(raw)

    def journal_value(self, raw: Any) -> Any:
        return {"action": raw["action"]}

    def is_done(self) -> bool:
        """Call `done` in a synchronous tool. Raises what it raises, and UsageError if it is async."""
        finished = self.done()
        if iscoroutine(finished):  # a coroutine is truthy
            finished.close()
            raise UsageError(
                f"question {self.key!r}: done= is async in a tool that is not; write `def` for done, or "
                "`async def` for the tool"
            )
        return bool(finished)


FIRST_PAUSE_MS: Final = 250
"""The pause before the second call of `done`. Each further one is twice as long, up to `poll_interval_ms`."""

MAX_ROUND_MS: Final = 40_000
"""The longest time that one round polls: a client's own timeout for a request is often 60 seconds."""

SEAL_RESERVE_MS: Final = 1_000
"""The time left in a round for sealing its state."""

MAX_POLL_SLEEP_MS: Final = 60_000
"""The longest sleep of a task, which sleeps for a quarter of the time that it has waited."""

Poll = tuple[ElicitUrl | None, float]
"""Asks the context to wait that many milliseconds, and then to call `done` of the elicitation, if any."""


class ConsentedUrl(Struct):
    """A URL that the user agreed to open, and the entry to record once its interaction is complete."""

    elicitation: ElicitUrl
    request: InputRequest
    entry: Entry


def poll(
    run: Run, urls: Mapping[str, ConsentedUrl], check_ms: float
) -> Generator[Poll, bool | None, list[str]]:
    """Return the keys of the URLs that were completed; the others are asked for again, or left to a task."""
    polled = {
        key: url.elicitation for key, url in urls.items() if url.elicitation.poll_interval_ms is not None
    }
    if run.inputs.urls_may_be_visited:
        polled = {}
    asked_again = urls.keys() - polled.keys()
    completed: list[str] = []
    channel = next(iter(urls.values())).request.channel  # the same for all: they need the same capability
    if run.is_task:
        completed = yield from _poll_in_task(run, polled, channel)
    elif polled and run.task.may_start:
        run.suspension.task_ttl_ms = TASK_TTL_MS
        run.requests.url_consents |= {key: urls[key].entry for key in polled}
    else:
        completed = yield from _poll_in_round(run, polled, channel, check_ms)
        asked_again = urls.keys() - completed
    for key, url in urls.items():
        if key in asked_again:
            run.requests.add(key, replace(url.request, has_consent=True))
    return completed


def _poll_in_round(
    run: Run, polled: Mapping[str, ElicitUrl], channel: Channel, check_ms: float
) -> Generator[Poll, bool | None, list[str]]:
    """Poll until all are complete, the user has to be asked something, or the round's time is nearly over."""
    deadline, left, completed = run.services.deadline, dict(polled), list[str]()
    longest_ms = ANSWER_WAIT_MS if channel == "page" else MAX_ROUND_MS
    end_ms = deadline.clock_ms() + min(deadline.remaining_ms() - SEAL_RESERVE_MS, longest_ms)
    is_repeated = channel == "page" or run.history.journal.url_wait_rounds  # parked calls do not count them
    pause_ms: float = _interval_ms(polled) if is_repeated else FIRST_PAUSE_MS
    while left and not run.requests.needs_user(channel):
        began_ms = deadline.clock_ms()
        if began_ms + pause_ms + check_ms > end_ms:
            yield None, max(end_ms - began_ms, 0)  # the next round begins with a check
            break
        completed += yield from _check_after_pause(left, pause_ms)
        check_ms = max(check_ms, deadline.clock_ms() - began_ms - pause_ms)
        pause_ms = min(2 * pause_ms, _interval_ms(left))
    return completed


def _poll_in_task(
    run: Run, polled: Mapping[str, ElicitUrl], channel: Channel
) -> Generator[Poll, bool | None, list[str]]:
    """Poll until all are complete while the pauses are short; then let the task sleep."""
    left, completed = dict(polled), list[str]()
    while left:
        waiting_since_ms = min(_waiting_since_ms(run, key) for key in left)
        now_ms = _now_ms(run)
        pause_ms = max((now_ms - waiting_since_ms) // 4, _interval_ms(left))
        is_short = run.services.deadline.is_short_of()
        if pause_ms > MAX_INLINE_PAUSE_MS or run.requests.needs_user(channel) or is_short:
            run.suspension.sleep_until(now_ms + min(pause_ms, max(MAX_POLL_SLEEP_MS, _interval_ms(left))))
            break
        completed += yield from _check_after_pause(left, pause_ms)
    return completed


def _waiting_since_ms(run: Run, key: str) -> int:
    """Return when the first check found the URL incomplete, journaled for later workers."""
    since_ms: int = run.replay_or_make(f"{key}~opened", Kind.NOW, lambda: _now_ms(run))
    return since_ms


def _now_ms(run: Run) -> int:
    return int(run.services.clock() * 1000)


def _check_after_pause(
    left: dict[str, ElicitUrl], pause_ms: float
) -> Generator[Poll, bool | None, list[str]]:
    """After a pause, remove the complete ones from `left` and return their keys."""
    completed = []
    for key, elicitation in list(left.items()):
        if (yield elicitation, pause_ms):
            completed.append(key)
            del left[key]
        pause_ms = 0
    return completed


def _interval_ms(elicitations: Mapping[str, ElicitUrl]) -> int:
    """Return the longest interval: the call continues once all are complete."""
    return max((each.poll_interval_ms or 0 for each in elicitations.values()), default=0)
