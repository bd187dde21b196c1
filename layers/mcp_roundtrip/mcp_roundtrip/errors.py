"""The package's exceptions. Those of requests that are not let in are beside what raises them.

::

    BaseException
    ├── Suspend                          a run stops here; `except Exception` must not swallow it
    └── Exception
        └── McpRoundtripError            catch this to catch all of the following
            ├── ToolError                the model reads the message (`isError: true`)
            │   ├── ArgumentsError       the arguments do not fit the tool's inputSchema
            │   ├── ElicitationDeclined  the user said no (.key)
            │   ├── ElicitationCancelled the user dismissed the question (.key)
            │   ├── ResourceNotFound     there is no resource of the URI that is read: -32602
        │   ├── CallAborted          the server ends a call that it cannot finish
            │   ├── StepFailed           a step has used up the attempts of its Retry (.key)
            │   └── StepInterrupted      a step that may run once did not come to its end (.key)
            ├── ProtocolError            a JSON-RPC error (.code, .message, .data, .http_status)
            │   └── MissingClientCapability   -32021 (.required)
            ├── DefinitionError          a tool, question or schema that cannot be offered: mend the code
            ├── UsageError               a tool used its Context wrongly: mend the code
            │   ├── InvalidKey           empty, not a string, too long or with a reserved character (.key)
            │   ├── DuplicateKey         one key used twice in one run (.key)
            │   └── NotAwaited           a call of an AsyncContext was used or left without `await`
            ├── Drift                    the code changed under a call in flight (.key, .changed)
            ├── InvalidAnswer            the client's answer does not fit its question (.reason)
            ├── StateRejected            a requestState that is not accepted (.reason: for the log only)
            ├── TooLarge                 base of three; a note for the log says what to do instead
            │   ├── StateTooLarge        the journal does not fit into a requestState (.size, .limit)
            │   ├── ResultTooLarge       the response does not fit into a Lambda response (.limit)
            │   └── ItemTooLarge         what a task has to remember does not fit into an item (.size, .limit)
            ├── KeyServiceError          the key service did not sign or answer (.reason: for the log only)
            ├── StoreError               the store of tasks did not do its part (.reason: as above)
            ├── ForwardingFailed         a function behind the front door did not answer (.reason: as above)
            └── SettingsError            a setting is missing or contradictory (.setting)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

INVALID_PARAMS = -32602
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021


class Suspend(BaseException):
    """Ends a pass over a tool's body: something has to happen before the run can go on."""


class McpRoundtripError(Exception):
    """Base of every exception this package raises, `Suspend` aside."""


class ToolError(McpRoundtripError):
    """Raise it in a tool to tell the model what went wrong; the message reaches the model as it is.

    Raised in a prompt or a resource it becomes -32602 with the message, or -32603 where `is_internal`.
    """

    is_internal: ClassVar[bool] = False
    """Whether the request was right and the server could not carry it out."""


class CallAborted(ToolError):
    """The server ends a call that it cannot finish; the message says why."""

    is_internal = True


class ArgumentsError(ToolError):
    """The call's arguments do not fit the tool's schema; the message says which and why."""


class _Answered(ToolError):
    def __init__(self, key: str) -> None:
        super().__init__(f"The user {self.verb} {key!r}.")
        self.key = key

    verb = "refused"


class ElicitationDeclined(_Answered):
    """The user declined the question `key`."""

    verb = "declined to answer"


class ElicitationCancelled(_Answered):
    """The user dismissed the question `key` without a choice."""

    verb = "dismissed the question"


class ResourceNotFound(ToolError):
    """Raise it in a resource's function where there is no such resource; the client learns the URI."""

    def __init__(self, message: str = "Resource not found") -> None:
        super().__init__(message)


class StepFailed(ToolError):
    """The step `key` raised at each of its attempts; the errors are in the log, the last is the cause."""

    is_internal = True

    def __init__(self, key: str, attempts: int) -> None:
        super().__init__(f"Step {key!r} failed in each of {attempts} attempts. Call the tool again later.")
        self.key = key


class StepInterrupted(ToolError):
    """The step `key` may run at most once, and it raised or its worker was lost: its effect may be there."""

    is_internal = True

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Step {key!r} was interrupted and must not run twice. Check whether it took effect before you "
            "call the tool again."
        )
        self.key = key


class ProtocolError(McpRoundtripError):
    """Becomes a JSON-RPC error response.

    `code` is the JSON-RPC code, for features -32602, -32603 or one outside -32768 to -32000 (basic/index
    "Error Codes"). `data` is its optional member, `http_status` (200 to 499) overrides the status that
    `protocol.jsonrpc` gives for the code. The server adds the `notifications` that precede the error, and
    `fields` for the log.
    """

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
        self.notifications: tuple[Mapping[str, Any], ...] = ()
        self.fields: Mapping[str, Any] = {}


class MissingClientCapability(ProtocolError):
    """-32021 with exactly the capabilities (`required`, in ClientCapabilities form) that are missing.

    `questions` are those that could not be asked, by key; they stay here. `needed_by` says what needs the
    capabilities if no question does, such as "The tool 'pay'". `lost` are the keys of steps whose results end
    with the call.
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
        names, keys = list(dotted(required)), list(self.questions)
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


def dotted(capabilities: Mapping[str, Any]) -> Iterator[str]:
    """Capabilities as `requires=` takes them: `sampling.tools`."""
    for name, members in capabilities.items():
        if isinstance(members, Mapping) and members:
            yield from (f"{name}.{member}" for member in dotted(members))
        else:
            yield name


class DefinitionError(McpRoundtripError):
    """A tool, question or schema is declared in a way the protocol cannot carry."""


class UsageError(McpRoundtripError):
    """A tool used its Context in a way the engine does not allow."""


class InvalidKey(UsageError):
    """A key is not a non-empty string free of the reserved characters `~` and `/`, or too long."""

    def __init__(self, key: object) -> None:
        super().__init__(
            f"key {key!r:.200} is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', "
            "and of 1 to 900 bytes with the names of its branches"
        )
        self.key = key


class DuplicateKey(UsageError):
    """`key` was used twice in one run. In a loop, put the item into the key."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"key {key!r} is used twice in this call; give each question and step a key of its own, in a "
            "loop with the item in it, as in f'pay-{item.id}'"
        )
        self.key = key


class NotAwaited(UsageError):
    """A call of an AsyncContext was used as a value, or left behind, without `await`.

    The message names the call by its key, the file and the line.
    """


class Drift(McpRoundtripError):
    """The tool's code no longer matches the journal of a call in flight.

    `key` names the question or step, `changed` says what about it changed.
    """

    def __init__(self, key: str, changed: str) -> None:
        super().__init__(f"{key!r}: {changed}")
        self.key = key
        self.changed = changed
        self.add_note("A deployment changed the code of a call in flight: give what changes a new key")


class ErrorWithReason(McpRoundtripError):
    """Base of those that have a `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InvalidAnswer(ErrorWithReason):
    """An answer does not fit its question; `reason` is shown to whoever is asked again."""


class StateRejected(ErrorWithReason):
    """A `requestState` is not accepted. `reason` goes to the log; the wire has one fixed text."""


class TooLarge(McpRoundtripError):
    """Something has to be kept elsewhere. The message may reach the client; the note is for the author."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.add_note("Keep what is large elsewhere, and return a link or a key: see mcp_roundtrip.s3")


class StateTooLarge(TooLarge):
    """The journal does not fit into a `requestState`: `size` characters, at most `limit`."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"requestState would be {size} characters, the limit is {limit}; "
            "return references from steps instead of large values"
        )
        self.size = size
        self.limit = limit


class ResultTooLarge(TooLarge):
    """The response is over `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The result is too large to be sent: ask for less, {limit} bytes at most.")
        self.limit = limit


class KeyServiceError(ErrorWithReason):
    """The key service did not sign, or did not say which keys it has. `reason` is for the log."""


class StoreError(ErrorWithReason):
    """The store of tasks did not read or write. `reason` is for the log."""


class ItemTooLarge(TooLarge):
    """An item of a task would be `size` bytes, at most `limit`."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"an item of the task would be {size} bytes, the limit is {limit}; "
            "return references from steps instead of large values"
        )
        self.size = size
        self.limit = limit


class ForwardingFailed(ErrorWithReason):
    """The function that owns a tool did not answer a forwarded call. `reason` is for the log."""


class SettingsError(ErrorWithReason):
    """The setting named `setting` (an environment variable) is missing or contradicts another."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.reason = self.setting = setting
