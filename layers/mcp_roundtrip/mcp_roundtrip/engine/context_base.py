"""What `Context` and `AsyncContext` share: facts about the call, recorded values, and identifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from uuid import UUID

from msgspec import Struct, field

from mcp_roundtrip.arguments.signature import AnyContext
from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.protocol import capabilities
from mcp_roundtrip.protocol.request_validation import trace_context
from mcp_roundtrip.protocol.strict_json import canonical_json, sha256

if TYPE_CHECKING:
    from mcp_roundtrip.engine.asking import Questions
    from mcp_roundtrip.engine.steps import Step
    from mcp_roundtrip.protocol.trace import TraceContext

P = ParamSpec("P")
T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")

LINK_PARAMETER: Final = "mcp_link"

MAX_SLEEP_MS: Final = 10 * 365 * 86_400_000


class CallInfo(Struct, frozen=True):
    principal: Principal | None = None
    client: Mapping[str, Any] | None = None
    lambda_context: Any = None
    namespaced_requests: bool = False
    trace: Mapping[str, Any] = field(default_factory=dict)


class ContextBase(AnyContext):
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
        return trace_context(self._info.trace)

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
        tool's `channels`. Raises DefinitionError for a name that no client can declare.
        """
        path = capabilities.declarable_path("supports", capability)
        return self._run.inputs.find_channels().supports(path)

    @property
    def in_task(self) -> bool:
        """Whether the call has become a task."""
        return self._run.is_task

    def idempotency_key(self, name: str) -> str:
        """Return 32 hexadecimal characters for a downstream API's idempotency parameter.

        They are the same in all rounds, retries and replays of this call, from its first state on.
        """
        full = self._prefix + self._run.check_key(name)
        return sha256(f"mcp-rs/v1/idempotency:{self._run.history.journal.flow_id}:{full}".encode()).hex()[:32]

    def reference(self, name: str) -> str:
        """Return 32 hexadecimal characters that name something which outlives this call, such as an approval.

        They are the same in every call of the same principal with the same tool and arguments, and with the
        same answers before this line. For an anonymous caller they are the same in this call only.
        """
        full = self._prefix + self._run.check_key(name)
        try:
            identity = self._run.services.call_identity()
        except SettingsError as error:
            raise self._run.fail(error) from error
        if identity is None:
            return self.idempotency_key(name)
        # The answers are part of it because an approval is about them, too.
        named = canonical_json([identity, full, self._run.history.answers_before(self._prefix)])
        return sha256(b"mcp-rs/v1/reference:" + named).hex()[:32]

    @cached_property
    def _questions(self) -> Questions:
        from mcp_roundtrip.engine.asking import Questions  # most calls ask nothing

        return Questions(self._run, self._prefix, self._info.namespaced_requests)

    def _step(self, name: str, function: Callable[..., Any], kwargs: dict[str, Any]) -> Step:
        """Return a step, and remove its options from the arguments of its function."""
        from mcp_roundtrip.engine.steps import Step  # most calls have no steps

        at_most_once, retry = kwargs.pop("at_most_once", False), kwargs.pop("retry", None)
        return Step(self._run, self._use_key(name), function, at_most_once, retry)

    def _use_key(self, key: str) -> str:
        return self._run.use_key(key, self._prefix)

    def _now(self, key: str) -> datetime:
        clock = self._run.services.clock
        epoch_ms = self._run.replay_or_make(self._use_key(key), Kind.NOW, lambda: int(clock() * 1000))
        return datetime.fromtimestamp(epoch_ms / 1000, UTC)

    def _uuid(self, key: str) -> UUID:
        random_bytes = self._run.services.random_bytes
        return UUID(
            self._run.replay_or_make(
                self._use_key(key), Kind.UUID, lambda: str(UUID(bytes=random_bytes(16), version=4))
            )
        )

    def _random(self, key: str) -> float:
        return float(
            self._run.replay_or_make(self._use_key(key), Kind.RANDOM, self._run.services.random_fraction)
        )

    def _signed_link(self, key: str, url: str, ttl_ms: int) -> str:
        key, run = self._use_key(key), self._run

        def link() -> str:
            expires_at = int(run.services.clock() + ttl_ms / 1000)
            try:
                token = run.services.sign_link(key, run.history.journal.flow_id, expires_at)
            except (KeyServiceError, SettingsError) as error:
                raise run.fail(error) from error
            address, hash_, fragment = url.partition("#")
            separator = "&" if "?" in address else "?"
            return f"{address}{separator}{LINK_PARAMETER}={token}{hash_}{fragment}"

        return str(run.replay_or_make(key, Kind.LINK, link))

    def _request_task(self, ttl_ms: int) -> bool:
        """Request that the call becomes a task, and return True if the caller has to suspend."""
        run = self._run
        run.check_context_usable()
        if self._prefix:
            raise run.usage_error(
                f"run_as_task is called in the branch {self._prefix.rstrip('/')!r}; call it before the "
                "branches begin"
            )
        if type(ttl_ms) is not int or ttl_ms < 1:
            raise run.usage_error(
                f"run_as_task: ttl_ms={ttl_ms!r:.100} is not a lifetime; pass whole milliseconds, at least 1"
            )
        if not run.task.is_offered:
            raise run.usage_error(
                'run_as_task is called without task=; write @server.tool(task="optional"), or "required". '
                "Prompts and resources cannot become tasks"
            )
        if run.task.may_start:
            run.suspension.task_ttl_ms = ttl_ms
        return run.task.may_start

    def _begin_sleep(self, key: str, duration_ms: int) -> bool:
        """Journal when a sleep ends, and return True if the caller has to suspend until then."""
        key, run = self._use_key(key), self._run
        if not run.is_task:
            raise run.usage_error(
                f"sleep {key!r} is called outside a task; call ctx.run_as_task() before it, and for clients "
                "without tasks sleep only if ctx.in_task"
            )
        if type(duration_ms) not in (int, float) or not 0 <= duration_ms <= MAX_SLEEP_MS:
            raise run.usage_error(
                f"sleep {key!r}: {duration_ms!r:.100} is not a duration; pass milliseconds from 0 to "
                f"{MAX_SLEEP_MS}"
            )
        clock = run.services.clock
        wake_at_ms: int = run.replay_or_make(key, Kind.WAKE, lambda: int(clock() * 1000 + duration_ms))
        if clock() * 1000 >= wake_at_ms:
            return False
        run.suspension.sleep_until(wake_at_ms)
        return True
