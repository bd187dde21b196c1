"""What a synchronous tool sees of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from uuid import UUID

from mcp_roundtrip.engine import effects
from mcp_roundtrip.engine.asking import ask
from mcp_roundtrip.engine.context_base import ContextBase
from mcp_roundtrip.engine.effects import Step
from mcp_roundtrip.engine.namespaced import NamespacedRequest
from mcp_roundtrip.engine.questions import (
    POLL_INTERVAL_MS,
    UNSET,
    Elicit,
    ElicitUrl,
    ListRoots,
    Message,
    Question,
    Root,
    Sample,
    Sampled,
    Unset,
)
from mcp_roundtrip.engine.run import inside_function
from mcp_roundtrip.errors import ElicitationDeclined

if TYPE_CHECKING:
    from mcp_roundtrip.engine.retry import Retry

P = ParamSpec("P")
T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")


class Context(ContextBase):
    """Handed to a tool's parameter that is annotated with it."""

    @overload
    def elicit(
        self,
        key: str,
        message: str,
        model: type[T],
        *,
        default: T | Unset = UNSET,
        user_only: bool | None = None,
    ) -> T: ...
    @overload
    def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any: ...
    def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any:
        """Ask the user to fill in a form; returns the validated `model`.

        `model` is a flat pydantic model or dataclass, or the type of a single field. `user_only` is for
        questions that the user has to have seen; None makes it True for confirmations. Raises
        ElicitationDeclined or ElicitationCancelled when the user does not answer.
        """
        return self.ask(Elicit(key, message, model, default, user_only))[0]

    def confirm(self, key: str, message: str, *, default: bool | Unset = UNSET) -> bool:
        """Ask the user yes or no; True only if the user was shown `message` and said yes.

        False for a user who declines. Raises ElicitationCancelled for one who dismisses the question.
        """
        try:
            return self.elicit(key, message, bool, default=default, user_only=True)
        except ElicitationDeclined:
            return False

    def elicit_url(
        self,
        key: str,
        message: str,
        url: str,
        *,
        done: Callable[[], bool],
        default: Unset | None = UNSET,
        poll_interval_ms: int | None = POLL_INTERVAL_MS,
    ) -> None:
        """Send the user to a URL; returns once `done()` says that what happens there is complete.

        Once the user has agreed, `done` is called every `poll_interval_ms` milliseconds, for as long as the
        round lasts, or once in each round if that is None.
        """
        self.ask(ElicitUrl(key, message, url, done, default, poll_interval_ms))

    def sample(
        self,
        key: str,
        messages: str | Sequence[Message],
        *,
        max_tokens: int,
        default: Sampled | Unset = UNSET,
        **options: Any,
    ) -> Sampled:
        """Ask the client's model. `options` are CreateMessageRequest params as the schema spells them."""
        return self.ask(Sample(key, messages, max_tokens, options, default))[0]

    def list_roots(
        self, key: str = "roots", *, default: tuple[Root, ...] | Unset = UNSET
    ) -> tuple[Root, ...]:
        """The roots the client exposes."""
        return self.ask(ListRoots(key, default))[0]

    def request(self, key: str, method: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """A reverse-DNS namespaced request, for a client that declared that extension. Experimental."""
        return self.ask(NamespacedRequest(key, method, params or {}))[0]

    @overload
    def ask(self, first: Question[T1], /) -> tuple[T1]: ...
    @overload
    def ask(self, first: Question[T1], second: Question[T2], /) -> tuple[T1, T2]: ...
    @overload
    def ask(self, first: Question[T1], second: Question[T2], third: Question[T3], /) -> tuple[T1, T2, T3]: ...
    @overload
    def ask(
        self, first: Question[T1], second: Question[T2], third: Question[T3], fourth: Question[T4], /
    ) -> tuple[T1, T2, T3, T4]: ...
    @overload
    def ask(self, *questions: Question[Any]) -> tuple[Any, ...]: ...
    def ask(self, *questions: Question[Any]) -> tuple[Any, ...]:
        """Put several questions in one round; the answers come back in their order."""
        asking, look = ask(self._run, self._allowed(questions), self._prefix), None
        while True:
            is_done = look and self._is_done(*look)  # may raise StopIteration, which ends nothing here
            try:
                look = asking.send(is_done)
            except StopIteration as end:
                answers = end.value
                break
        if answers is None:
            raise self._run.suspend()
        return tuple(answers)

    def _is_done(self, question: ElicitUrl | None, after_ms: float) -> bool:
        self._pause(after_ms, ends_pass=False)
        if question is None:
            return False
        token = inside_function.set(("question", self._prefix + question.key))
        try:
            return question.is_done()
        finally:
            inside_function.reset(token)

    @overload
    def step(
        self, name: str, function: Callable[..., T], /, *args: Any, at_most_once: bool, **kwargs: Any
    ) -> T: ...
    @overload
    def step(
        self, name: str, function: Callable[..., T], /, *args: Any, retry: Retry | None, **kwargs: Any
    ) -> T: ...
    @overload
    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a side effect once and remember its result, which must fit its return annotation.

        A worker that is lost while it runs leaves nothing behind, so the function runs again; with
        `at_most_once`, in a task alone, it does not: StepInterrupted is raised instead, and also when the
        function raises: let it return what the tool should know of a refusal. With `retry` a
        function that raises runs again, and StepFailed is raised after its last attempt. A function with
        parameters of these names gets them from a lambda.
        """
        at_most_once, retry = kwargs.pop("at_most_once", False), kwargs.pop("retry", None)
        key = self._claim(name)
        replayed = effects.replayed(self._run, key, function)
        if replayed is not None:
            return replayed[0]
        step = Step(key, function, at_most_once, retry)
        step.check(self._run)
        self.checkpoint()
        step.begin(self._run)
        while True:
            self._pause(*step.pause_ms(self._run))
            try:
                value = self._work(step, args, kwargs)
            except Exception as error:
                step.failed(self._run, error)
            else:
                return step.settle(self._run, value)

    def _pause(self, duration_ms: float, ends_pass: bool) -> None:
        if duration_ms:
            self._run.environment.pause_ms(duration_ms)
        if ends_pass:
            raise self._run.suspend()

    def _work(self, step: Step, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        token = inside_function.set(("step", step.key))
        try:
            value = step.function(*args, **kwargs)
            step.refuse_awaitable(value)
            return value
        finally:
            inside_function.reset(token)

    def run_as_task(self, *, ttl_ms: int = 3_600_000) -> None:
        """Make the call a task, which continues without its client and lives for `ttl_ms` milliseconds.

        Does nothing if it is one already, or if the tool is registered with task="optional" and the client
        did not declare the extension: the call then continues in rounds.
        """
        if effects.request_task(self._run, self._prefix, ttl_ms):
            raise self._run.suspend()

    def sleep(self, key: str, duration_ms: int) -> None:
        """In a task: resume after that time. No worker waits in between.

        Unless a queue triggers the workers, the task resumes when its client polls.
        """
        if effects.begin_sleep(self._run, self._claim(key), duration_ms):
            raise self._run.suspend()

    def checkpoint(self, *, needs_ms: float | None = None) -> None:
        """Give the request back with its state if less than `needs_ms` is left; the client retries at once.

        Does so only after this round has journaled something, and not while replaying.
        """
        if self._run.request_checkpoint(needs_ms):
            raise self._run.suspend()

    def now(self, key: str) -> datetime:
        """The current time in UTC; a replay sees the same."""
        return effects.now(self._run, self._claim(key))

    def uuid(self, key: str) -> UUID:
        """A random UUID; a replay sees the same."""
        return effects.uuid(self._run, self._claim(key))

    def random(self, key: str) -> float:
        """A random float in [0, 1); a replay sees the same."""
        return effects.random(self._run, self._claim(key))

    def signed_link(self, key: str, url: str, *, ttl_ms: int = 3_600_000) -> str:
        """`url` with a token bound to this call and its principal, for `elicit_url`.

        The page behind it checks the token with `Server.open_link` against its own signed-in user.
        """
        return effects.signed_link(self._run, self._claim(key), url, ttl_ms)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """`notifications/progress`, if the client asked for it; silent while replaying."""
        self._run.reports.progress(done, total, message, news=self._run.should_report())

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """`notifications/message`, if the client asked for that level; silent while replaying.

        Raises UsageError for a level that is not one of RFC 5424's, and for data that is not JSON.
        """
        self._run.reports.log(level, data, logger, news=self._run.should_report())
