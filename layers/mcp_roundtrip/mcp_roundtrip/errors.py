"""The exceptions that tools raise, catch or cause; `internal_errors` has those that only the server handles.

::

    BaseException
    ├── Suspend                          ends a pass; `except Exception` must not catch it
    └── Exception
        └── McpRoundtripError            base of all others
            ├── ToolError                the model reads the message (`isError: true`)
            │   ├── ElicitationDeclined  the user declined (.key)
            │   ├── ElicitationCancelled the user dismissed the question (.key)
            │   ├── ResourceNotFound     the URI that is read names no resource: -32602
            │   ├── StepFailed           a step failed in all attempts of its Retry (.key)
            │   └── StepInterrupted      an at-most-once step did not finish (.key)
            ├── ProtocolError            a JSON-RPC error (.code, .message, .data, .http_status)
            │   └── MissingClientCapability   -32021 (.required)
            ├── DefinitionError          a tool, question or schema cannot be offered: fix the code
            ├── UsageError               a tool used its Context wrongly: fix the code
            │   ├── InvalidKey           empty, not a string, too long, or with a reserved character (.key)
            │   ├── DuplicateKey         one key was used twice in one pass (.key)
            │   └── NotAwaited           a call of an AsyncContext was used or left without `await`
            ├── Drift                    the code of a call in flight changed (.key, .changed)
            └── ErrorWithReason          base of the errors with a reason (.reason)
                └── StateRejected        a requestState, or a token of a link, is not accepted

`DefinitionWarning` is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

INVALID_PARAMS = -32602
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021


class Suspend(BaseException):
    """Ends a pass over a tool's function: the client, or time, has to act before it can resume."""


class McpRoundtripError(Exception):
    """Base of every exception of this package except `Suspend`."""


class ToolError(McpRoundtripError):
    """Raise it in a tool to tell the model what went wrong. The model reads the message unchanged.

    In a prompt or a resource it becomes -32602 with the message, or -32603 if `is_internal`.
    """

    is_internal: ClassVar[bool] = False
    """Whether the request was valid and the server could not carry it out."""


class _Refused(ToolError):
    def __init__(self, key: str) -> None:
        super().__init__(f"The user {self.verb} {key!r}.")
        self.key = key

    verb = "refused"


class ElicitationDeclined(_Refused):
    """The user declined the question `key`."""

    verb = "declined to answer"


class ElicitationCancelled(_Refused):
    """The user dismissed the question `key` without an answer."""

    verb = "dismissed the question"


class ResourceNotFound(ToolError):
    """Raise it in a resource's function if the resource does not exist. The client gets the URI."""

    def __init__(self, message: str = "Resource not found") -> None:
        super().__init__(message)


class StepFailed(ToolError):
    """The step `key` raised in each of its attempts. The log has the errors; the last one is the cause."""

    is_internal = True

    def __init__(self, key: str, attempts: int) -> None:
        super().__init__(f"Step {key!r} failed in each of {attempts} attempts. Call the tool again later.")
        self.key = key


class StepInterrupted(ToolError):
    """The at-most-once step `key` raised, or its worker was lost. It may have taken effect."""

    is_internal = True

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Step {key!r} was interrupted and must not run twice. Check whether it took effect before you "
            "call the tool again."
        )
        self.key = key


class ProtocolError(McpRoundtripError):
    """Becomes a JSON-RPC error response.

    - `code` is the JSON-RPC code. Tools may use -32602, -32603 and codes outside -32768 to -32000 (MCP,
      basic/index "Error Codes").
    - `data` is the error's optional member.
    - `http_status` (200 to 499) overrides the status that `protocol.http` has for the code.
    """

    log_fields: Mapping[str, Any] = MappingProxyType({})
    """Fields for the log record of the request."""

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        http_status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.http_status = http_status


class MissingClientCapability(ProtocolError):
    """Becomes -32021 with the missing capabilities (`required`, in the form of ClientCapabilities).

    - `questions` are the questions that could not be asked, by key. They are not sent.
    - `needed_by` names what needs the capabilities if no question does, such as "The tool 'pay'".
    - `lost` are the keys of the steps whose results are lost with the call.
    """

    def __init__(
        self,
        required: Mapping[str, Any],
        questions: Mapping[str, Any] | None = None,
        *,
        needed_by: str = "This request",
        lost: Iterable[str] = (),
    ) -> None:
        self.required = required
        self.questions = questions or {}
        self.lost = tuple(lost)
        names, keys = list(dotted_capabilities(required)), list(self.questions)
        needs = f"{needed_by} needs"
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            several = f"The questions {', '.join(map(repr, keys[:3]))}{more} need"
            needs = several if len(keys) > 1 else f"The question {keys[0]!r} needs"
        done = " The call had done part of its work, and a new call does it again." if self.lost else ""
        super().__init__(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"{needs} client capabilities that this request does not declare: {', '.join(names)}. "
            f"Do not retry with this client: use one that declares them.{done}",
            {"requiredCapabilities": required},
        )


def dotted_capabilities(capabilities: Mapping[str, Any]) -> Iterator[str]:
    """Yield capabilities in the form that `requires=` takes, such as `sampling.tools`."""
    for name, members in capabilities.items():
        if isinstance(members, Mapping) and members:
            yield from (f"{name}.{member}" for member in dotted_capabilities(members))
        else:
            yield name


class DefinitionError(McpRoundtripError):
    """A tool, question or schema is declared in a way that MCP cannot express."""


class DefinitionWarning(UserWarning):
    """A tool works, but models refuse its name or its schema, which ends the session of a client."""


class UsageError(McpRoundtripError):
    """A tool used its context in a way that is not allowed."""


class InvalidKey(UsageError):
    """A key is empty, not a string, too long, or has one of the reserved characters `~` and `/`."""

    def __init__(self, key: object) -> None:
        super().__init__(
            f"key {key!r:.200} is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', "
            "and of 1 to 900 bytes with the names of its branches; in a loop over texts of the caller, use "
            "their numbers, as in f'file-{number}'"
        )
        self.key = key


class DuplicateKey(UsageError):
    """`key` was used twice in one pass. In a loop, put the item into the key."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"key {key!r} is used twice in this call; give each question and step its own: in a loop, add "
            "the item, as in f'pay-{item.id}', or its number, if items repeat; in a TaskGroup, use ctx.branch"
        )
        self.key = key


class NotAwaited(UsageError):
    """A call of an AsyncContext was used as a value, or left behind, without `await`."""


class Drift(McpRoundtripError):
    """The tool's code no longer matches the journal of a call in flight.

    `key` names the question or step, `changed` says what about it changed. `steps` have run in the call.
    """

    def __init__(self, key: str, changed: str, steps: Sequence[str] = ()) -> None:
        super().__init__(f"{key!r}: {changed}")
        self.key = key
        self.changed = changed
        self.steps = steps
        self.add_note(
            "A deployment, or a rollback, changed a call in flight: undo it, or give what changes a new key "
            "(a step with a new key runs again)"
        )


class ErrorWithReason(McpRoundtripError):
    """Base of the errors with a `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StateRejected(ErrorWithReason):
    """A `requestState`, or the token of a link, is not accepted. Clients get one text for every reason."""
