"""Hooks: an author's code around every pass over a function of the server (`Server.around`).

A hook is a generator that yields once. It takes no context and gets neither the answers nor the result, so
it cannot change what the journal replays. It sees the pass as a `Call`, to which it adds fields of the log,
the span and the audit record.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import Context, copy_context
from copy import deepcopy
from types import GeneratorType
from typing import Any, Final, Literal

from mcp_roundtrip.arguments.signature import function_name
from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.outcomes import Failed, Outcome, OutcomeName, single_exception
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.errors import ProtocolError, ToolError, UsageError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.server.request_types import FeatureCall

MAX_FIELDS: Final = 16
"""Fields that the hooks of one pass may add: every following log line carries them."""

MAX_FIELD_CHARACTERS: Final = 256
"""Characters of a field's text. The rest is cut off."""

MAX_FIELD_NUMBER: Final = 2**63
"""No integer of a span reaches it."""

SPAN_FIELD: Final = "mcp_roundtrip.field."
"""What the names of fields begin with in a span: it shadows no attribute of another convention."""

PassOutcome = OutcomeName | Literal["tool_error", "protocol_error", "arguments_refused", "raised"]
"""How a pass ended."""


class Call:
    """One pass of a call, as a hook sees it. A hook can read it, add fields to the log, and change nothing.

    `outcome` and `error_type` are None before the hook's `yield`. HTTP headers are not part of it, because
    they contain the caller's token.
    """

    __slots__ = ("_call", "_fields", "_outcome", "_run")

    def __init__(self, call: FeatureCall, run: Run) -> None:
        self._call = call
        self._run = run
        self._fields: dict[str, str | int | float | bool] = {}
        self._outcome: Outcome | None = None

    @property
    def kind(self) -> Literal["tool", "prompt", "resource"]:
        """What is called."""
        return self._call.feature.kind

    @property
    def name(self) -> str:
        """The name of the tool or prompt; of a resource, its URI or URI template."""
        return self._call.feature.name

    @property
    def method(self) -> str:
        """The MCP method, such as "tools/call". A worker has the one of the request that became the task."""
        return self._call.context.request.method

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments as the client sent them: they are validated after the hooks have begun."""
        return deepcopy(dict(self._call.params.arguments))

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None if the deployment allows anonymous callers."""
        return self._call.context.principal

    @property
    def scopes(self) -> frozenset[str] | None:
        """The scopes that the caller was granted; None in a worker, which has no token."""
        return None if self._run.is_task else self._call.context.scopes

    @property
    def client(self) -> Mapping[str, Any] | None:
        """The client's name and version, self-reported: for display and logs only, not for decisions."""
        info = self._call.context.request.meta.info
        return None if info is None else deepcopy(dict(info))

    @property
    def protocol_version(self) -> str:
        """The protocol version of the request."""
        return self._call.context.request.meta.protocol_version

    @property
    def flow_id(self) -> str:
        """The id that all passes of a call share. The log has it as `flow`."""
        return self._run.history.journal.flow_id

    @property
    def task_id(self) -> str | None:
        """The id of the task; None outside of a worker."""
        return str(self._call.context.request.id) if self._run.is_task else None

    @property
    def is_first_pass(self) -> bool:
        """Whether the call begins with this pass. A client may repeat a request, so it can be True twice."""
        return not self._run.inputs.is_resumed

    @property
    def remaining_ms(self) -> int:
        """The milliseconds until this pass has to end."""
        return self._run.services.deadline.remaining_ms()

    @property
    def correlation_id(self) -> str:
        """The id that every log line of the request has."""
        return self._call.context.invocation.correlation_id

    @property
    def outcome(self) -> PassOutcome | None:
        """How the pass ended; None before it has."""
        ended = self._outcome
        if ended is None or not isinstance(ended, Failed):
            return None if ended is None else ended.name
        match single_exception(ended.error):
            case ArgumentsError():
                return "arguments_refused"
            case ToolError():
                return "tool_error"
            case ProtocolError():
                return "protocol_error"
        return "raised"

    @property
    def error_type(self) -> str | None:
        """The name of the exception's class if the function, or an inner hook, raised one."""
        ended = self._outcome
        return type(single_exception(ended.error)).__name__ if isinstance(ended, Failed) else None

    def add_fields(self, **fields: str | int | float | bool) -> None:
        """Add fields to the following log lines of this request, below `fields`, to the span and the audit.

        A name has up to 40 lower-case letters, digits and underscores. A pass may have 16 names; a later
        value replaces an earlier one. A text is cut after 256 characters. Raises UsageError.
        """
        merged = self._fields | {name: _checked(name, value) for name, value in fields.items()}
        if len(merged) > MAX_FIELDS:
            raise UsageError(f"hooks added {len(merged)} fields to one pass; add at most {MAX_FIELDS}")
        self._fields = merged
        context = self._call.context
        context.tag(fields=merged)
        if context.ports.tracer is not None:
            context.ports.tracer.annotate({f"{SPAN_FIELD}{name}": merged[name] for name in fields})


def _checked(name: str, value: Any) -> str | int | float | bool:
    """Return the value of a field, cut to its limit. Raises UsageError."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", name):
        raise UsageError(
            f"add_fields: the name {name!r:.100} is not allowed; use lower-case letters, digits and "
            "underscores, and at most 40 characters"
        )
    if isinstance(value, str):
        return value[:MAX_FIELD_CHARACTERS].encode("utf-8", "replace").decode()
    if isinstance(value, int) and abs(value) < MAX_FIELD_NUMBER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise UsageError(
        f"add_fields: {name} is {type(value).__name__}; use a string, a finite number of 64 bits or a boolean"
    )


_ENDED: Final = object()

Hook = Callable[[Call], Iterator[None] | AsyncIterator[None]]
"""A function that yields once: the pass runs at its `yield`."""


def run_with_hooks(
    call: FeatureCall, run: Run, validate_and_run: Callable[[FeatureCall, Run], Outcome]
) -> Outcome:
    """Run the pass inside the hooks of the server, the first registered outermost.

    An exception before a `yield` is the outcome of the pass, as if the function had raised it. One after it
    is logged and changes nothing, because the function has had its effects. The function sees the context
    variables that a hook sets, and the next pass does not.
    """
    view, context = Call(call, run), copy_context()
    begun: list[tuple[Hook, Any]] = []
    try:
        for hook in call.context.options.hooks:
            if (error := _begin(hook, view, context, begun)) is not None:
                outcome: Outcome = Failed(error)
                break
        else:
            outcome = context.run(validate_and_run, call, run)
        view._outcome = outcome
        return outcome
    except Exception as refused:
        view._outcome = Failed(refused)
        raise
    finally:
        for hook, generator in reversed(begun):
            _end(hook, generator, call, context)


def _begin(hook: Hook, view: Call, context: Context, begun: list[tuple[Hook, Any]]) -> BaseException | None:
    """Run a hook up to its `yield`; return what it raised."""
    try:
        generator = hook(view)
        if _advance(generator, context):
            begun.append((hook, generator))
            return None
        name = function_name(hook)
        return UsageError(f"the hook {name} returned before its `yield`; raise ToolError to refuse a call")
    except BaseException as error:  # SystemExit would end the Lambda environment
        return error


def _end(hook: Hook, generator: Any, call: FeatureCall, context: Context) -> None:
    """Run the rest of a hook, and log what it raises."""
    try:
        if _advance(generator, context):
            raise UsageError(f"the hook {function_name(hook)} yields twice; remove the second `yield`")
    except BaseException as error:  # as above
        call.record_failure("hook_failed", error, hook=function_name(hook))


def _advance(generator: Any, context: Context) -> bool:
    """Run a hook to its next `yield`; return False if it ended."""
    if isinstance(generator, GeneratorType):
        return context.run(next, generator, _ENDED) is not _ENDED
    from mcp_roundtrip.engine.async_pass import advance_hook  # asyncio takes 40 ms

    return advance_hook(generator, context)
