"""Form and URL elicitation."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from inspect import isclass, iscoroutine
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct
from typing_extensions import is_typeddict  # pydantic needs this one before Python 3.12

from mcp_roundtrip.arguments.signature import type_name
from mcp_roundtrip.engine.questions import DEFAULT_POLL_INTERVAL_MS, UNSET, Question, Unset
from mcp_roundtrip.errors import DefinitionError, ElicitationCancelled, ElicitationDeclined, UsageError
from mcp_roundtrip.forms.form import Form
from mcp_roundtrip.protocol import capabilities
from mcp_roundtrip.protocol.capabilities import CapabilityPath

T = TypeVar("T")

MIN_POLL_INTERVAL_MS: Final = 1_000

_ABSOLUTE_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]\S*")


class _Elicitation(Question[T]):
    message: str

    def __post_init__(self) -> None:
        if not isinstance(self.message, str):
            kind = type(self.message).__name__
            raise DefinitionError(f"question {self.key!r}: the message is {kind}; pass a str")

    @property
    def method(self) -> str:
        return "elicitation/create"

    def journal_value(self, raw: Any) -> Any:
        return {name: raw[name] for name in ("action", "content") if name in raw}

    def _accepted(self, raw: Any) -> Any:
        """Return the content of an ElicitResult whose action is "accept"."""
        if raw["action"] == "decline":
            raise ElicitationDeclined(self.key)
        if raw["action"] == "cancel":
            raise ElicitationCancelled(self.key)
        return raw.get("content")


class Elicit(_Elicitation[T], Struct, frozen=True):
    """Ask the user to fill in a form.

    `model` is a flat pydantic model or dataclass, or the type of a single field. With `user_only`, an answer
    counts only after the client was sent this question with this text, and never if a model gives it. None
    means True for a confirmation (`forms.form.Form.is_confirmation`).
    """

    key: str
    message: str
    model: type[T]
    default: T | Unset = UNSET
    user_only: bool | None = None

    def __post_init__(self) -> None:
        _Elicitation.__post_init__(self)
        if self.default is not UNSET and not _is_valid_default(self.default, self.model):
            raise DefinitionError(
                f"question {self.key!r}: default= is {type(self.default).__name__}, and the answer is "
                f"{type_name(self.model)}; pass a value of that type, or None"
            )

    def _form(self) -> Form:
        try:
            return Form.from_model(self.model)
        except DefinitionError as error:
            raise DefinitionError(f"question {self.key!r}: {error}") from None

    def is_user_only(self) -> bool:
        return self._form().is_confirmation if self.user_only is None else self.user_only

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
    if default is None or not isclass(model) or is_typeddict(model):
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
    default: Unset | None = UNSET
    poll_interval_ms: int | None = DEFAULT_POLL_INTERVAL_MS
    trusts_answer: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _Elicitation.__post_init__(self)
        if not isinstance(self.url, str) or not _ABSOLUTE_URL.fullmatch(self.url):
            raise DefinitionError(
                f"question {self.key!r}: {self.url!r:.200} is not an absolute URL; write one such as "
                "'https://example.com/pay'"
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
        return {"mode": "url", "message": self.message, "url": self.url}

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
