"""The part of a tool's context that synchronous and asynchronous tools share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mcp_roundtrip.auth.principal import Principal
from mcp_roundtrip.engine import effects
from mcp_roundtrip.engine.questions import Question
from mcp_roundtrip.engine.run import Run, usage_errors
from mcp_roundtrip.protocol import capabilities

if TYPE_CHECKING:
    from mcp_roundtrip.engine.steps import Step
    from mcp_roundtrip.protocol.trace import TraceContext


class CallInfo(Struct, frozen=True):
    """The facts about a call that a tool may read."""

    principal: Principal | None = None
    client: Mapping[str, Any] | None = None
    lambda_context: Any = None
    namespaced_requests: bool = False
    trace: Mapping[str, Any] = field(default_factory=dict)


@cache
def load_steps() -> tuple[type[Step], Callable[[Run, str, Callable[..., Any]], tuple[Any] | None]]:
    """Import `Step` and `recorded_result`: calls without a step do not load them.

    Cached because an import statement takes longer than the rest of a replayed step.
    """
    from mcp_roundtrip.engine.steps import Step, recorded_result

    return Step, recorded_result


class ContextBase:
    """The properties and methods of `Context` and `AsyncContext` that neither suspend nor run anything."""

    def __init__(self, run: Run, info: CallInfo, prefix: str = "") -> None:
        self._run = run
        self._info = info
        self._prefix = prefix

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None if the deployment allows anonymous callers."""
        return self._info.principal

    @property
    def client(self) -> Mapping[str, Any] | None:
        """The client's name and version, self-reported: for display and logs only, not for decisions."""
        return self._info.client

    @property
    def trace(self) -> TraceContext:
        """The trace context that the client sent, to be passed on to the services that the tool calls."""
        from mcp_roundtrip.protocol.trace import TraceContext  # few tools read it

        return TraceContext.from_meta(self._info.trace)

    @property
    def lambda_context(self) -> Any:
        """The Lambda context object of this invocation."""
        return self._info.lambda_context

    @property
    def remaining_ms(self) -> int:
        """The milliseconds until this round has to end."""
        return self._run.services.deadline.remaining_ms()

    def supports(self, capability: str) -> bool:
        """Return whether a question that needs this capability, such as "sampling.tools", can be asked.

        That is so if the client declared it on this request. Forms and URLs may also be asked through the
        tool's `channels`.
        """
        return self._run.inputs.channels.supports(capabilities.capability_path(capability))

    @property
    def in_task(self) -> bool:
        """Whether the call has become a task."""
        return self._run.is_task

    def idempotency_key(self, name: str) -> str:
        """Return 32 hexadecimal characters for a downstream API's idempotency parameter.

        They are the same in all rounds, retries and replays of this call, from its first state on.
        """
        return effects.idempotency_key(self._run, self._prefix + self._run.check_key(name))

    def reference(self, name: str) -> str:
        """Return 32 hexadecimal characters that name something which outlives this call, such as an approval.

        They are the same in every call of the same principal with the same tool and arguments, and with the
        same answers before this line. For an anonymous caller they are the same in this call only.
        """
        return effects.reference(self._run, self._prefix, self._run.check_key(name))

    def _use_key(self, key: str) -> str:
        return self._run.use_key(key, self._prefix)

    def _check_questions(self, questions: Sequence[Question[Any]]) -> Sequence[Question[Any]]:
        """Raise UsageError for a value that is not a question, and for an impossible namespaced request."""
        for question in questions:
            if not isinstance(question, Question):
                raise self._run.fail(usage_errors().not_a_question(question))
        if asked := [question for question in questions if question.is_namespaced]:
            if self.in_task:
                raise self._run.fail(usage_errors().namespaced_request_in_task(asked[0].key))
            if not self._info.namespaced_requests:
                raise self._run.fail(usage_errors().namespaced_requests_off(asked[0].key))
        return questions
