"""What the contexts of synchronous and asynchronous tools have in common: everything that only reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.engine import effects
from mcp_roundtrip.engine.namespaced import NamespacedRequest
from mcp_roundtrip.engine.questions import Question
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.protocol import capabilities

if TYPE_CHECKING:
    from mcp_roundtrip.protocol.trace import TraceContext


@dataclass(frozen=True, slots=True)
class CallInfo:
    """The read-only facts about a call that a context hands on."""

    principal: Principal | None = None
    client: Mapping[str, Any] | None = None
    lambda_context: Any = None
    namespaced_requests: bool = False
    trace: Mapping[str, Any] = field(default_factory=dict)


class ContextBase:
    """What `Context` and `AsyncContext` have in common: everything that only reads."""

    def __init__(self, run: Run, info: CallInfo, prefix: str = "") -> None:
        self._run = run
        self._info = info
        self._prefix = prefix

    @property
    def principal(self) -> Principal | None:
        """The caller; None where the deployment lets anonymous callers in."""
        return self._info.principal

    @property
    def client(self) -> Mapping[str, Any] | None:
        """The client's name and version as it reports them itself: for display and logs, not decisions."""
        return self._info.client

    @property
    def trace(self) -> TraceContext:
        """The trace this request belongs to, as its client says: to be sent on to the services you call."""
        from mcp_roundtrip.protocol.trace import TraceContext  # few tools ask

        return TraceContext.read(self._info.trace)

    @property
    def lambda_context(self) -> Any:
        """The Lambda context object of this invocation."""
        return self._info.lambda_context

    @property
    def remaining_ms(self) -> int:
        """Milliseconds until this round has to end."""
        return self._run.environment.budget.remaining_ms()

    def supports(self, capability: str) -> bool:
        """Whether the client declared a capability on this request, such as "sampling.tools"."""
        return capabilities.declares(self._run.capabilities, capabilities.capability_path(capability))

    @property
    def in_task(self) -> bool:
        """Whether the call has become a task."""
        return self._run.tasks.recorder is not None

    def idempotency_key(self, name: str) -> str:
        """32 hexadecimal characters for a downstream API's idempotency parameter.

        The same over all rounds, retries and replays from the first state the client received.
        """
        return effects.idempotency_key(self._run, self._prefix + self._run.valid(name))

    def reference(self, name: str) -> str:
        """32 hexadecimal characters for what outlives this call, such as a request for approval.

        The same in every call of the same principal with the same tool and arguments, and with the same
        answers before this line; an anonymous caller's belongs to this call.
        """
        return effects.reference(self._run, self._prefix, self._run.valid(name))

    def _claim(self, key: str) -> str:
        return self._run.claim(key, self._prefix)

    def _allowed(self, questions: Sequence[Question[Any]]) -> Sequence[Question[Any]]:
        """Raise UsageError for what is no question, and for namespaced requests where there can be none."""
        for question in questions:
            if not isinstance(question, Question):
                raise self._run.fail(effects.usage_errors().no_question(question))
        if asked := [question for question in questions if isinstance(question, NamespacedRequest)]:
            if self.in_task:
                raise self._run.fail(effects.usage_errors().request_in_task(asked[0].key))
            if not self._info.namespaced_requests:
                raise self._run.fail(effects.usage_errors().requests_off(asked[0].key))
        return questions
