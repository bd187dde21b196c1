"""The errors that tools do not see: the server turns each into a reply and a log record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError, ErrorWithReason, McpRoundtripError, ProtocolError, ToolError


class ArgumentsError(ToolError):
    """The arguments do not fit the tool's input schema. The message says which, and why."""


class CallAborted(ToolError):
    """The server ends a call that it cannot finish. The message says why."""

    is_internal = True


class TooLarge(McpRoundtripError):
    """Base of the errors about a size limit. Clients may see the message; the note is for the author."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.add_note("Keep what is large elsewhere, and return a link or a key: see mcp_roundtrip.s3")


class StateTooLarge(TooLarge):
    """The journal does not fit into a `requestState`: it has `size` characters, and the limit is `limit`."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"requestState would be {size} characters, the limit is {limit}; "
            "return references from steps instead of large values"
        )
        self.size = size
        self.limit = limit


class ResultTooLarge(TooLarge):
    """The response is larger than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The result is too large to be sent: ask for less, {limit} bytes at most.")


class ItemTooLarge(TooLarge):
    """A DynamoDB item of a task would have `size` bytes; `limit` is the limit, `key` that of an answer."""

    def __init__(self, size: int, limit: int, key: Any = None) -> None:
        super().__init__(
            f"an item of the task would be {size} bytes, the limit is {limit}; "
            "return references from steps instead of large values"
        )
        self.size = size
        self.limit = limit
        self.key = key


class LeaseLost(McpRoundtripError):
    """Another worker has the task of this pass, or the task has ended: the pass writes nothing more."""


class Refusal(ProtocolError):
    """A ProtocolError with the `reason` that the audit record has. The client does not see it."""

    def __init__(self, reason: str, code: int, message: str, data: Any = None, **options: int) -> None:
        super().__init__(code, message, data, **options)
        self.reason = reason


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Put a name before the text of a DefinitionError."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error}") from None


MAX_NAME: Final = 128  # characters of a member's name, which a client may have chosen, in a message


def format_location(root: str, path: Sequence[str | int]) -> str:
    """Return a place as text: `arguments` and `("sizes", 0, "vcpus")` give `arguments.sizes[0].vcpus`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step[:MAX_NAME]}" for step in path]
    return (root + "".join(steps)).removeprefix(".") or "answer"  # forms have no root


class InvalidValue(McpRoundtripError):
    """A value does not fit its schema. The text has one line per problem, with its place, and no value.

    It may quote texts of the author's validators, and names that a client made; `text_for_log` does not.
    """

    def __init__(self, text: str, text_for_log: Callable[[], str] | None = None) -> None:
        super().__init__(text)
        self.text_for_log = text_for_log or (lambda: text)


class InvalidAnswer(ErrorWithReason):
    """An answer does not fit its question. The user who is asked again is shown the `reason`.

    `log_reason` is the same without texts that may quote the answer.
    """

    def __init__(self, reason: str, log_reason: str) -> None:
        super().__init__(reason)
        self.log_reason = log_reason


class KeyServiceError(ErrorWithReason):
    """KMS did not sign, or did not return its keys. The reason and the text are for the log only."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(text or reason)
        self.reason = reason


class StoreError(ErrorWithReason):
    """The task table could not be read or written. The reason is for the log only."""


class FlowIsStored(McpRoundtripError):
    """A concurrent round of the flow has become a task or was parked: this one continues there."""


class ForwardingFailed(ErrorWithReason):
    """The function that owns a tool did not answer a forwarded call. The reason is for the log only.

    `is_throttled`: Lambda refused the call, and the function did not run.
    """

    def __init__(self, reason: str, *, is_throttled: bool = False) -> None:
        super().__init__(reason)
        self.is_throttled = is_throttled


class AuditFailed(ErrorWithReason):
    """An audit record could not be stored. The reason is for the log only."""


class SettingsError(ErrorWithReason):
    """The environment variable `setting` is missing, or contradicts another one."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.reason = self.setting = setting
