"""The context of a synchronous tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from msgspec import UNSET, UnsetType

from mcp_roundtrip.engine.context_base import T1, T2, T3, T4, ContextBase, P, T
from mcp_roundtrip.engine.pass_state import running
from mcp_roundtrip.engine.question_channels import DEFAULT_POLL_INTERVAL_MS, Question
from mcp_roundtrip.errors import ElicitationDeclined

if TYPE_CHECKING:
    from mcp_roundtrip.engine.elicitation import ElicitUrl
    from mcp_roundtrip.engine.sampling_and_roots import Message, Root, Sampled
    from mcp_roundtrip.engine.steps import Retry


class Context(ContextBase):
    """Asks, runs steps and reports for a `def` tool: the value of the parameter annotated with it."""

    @overload
    def elicit(
        self,
        key: str,
        message: str,
        model: type[T],
        *,
        default: T | UnsetType = UNSET,
        user_only: bool | None = None,
    ) -> T: ...
    @overload
    def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any: ...
    def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any:
        """Ask the user to fill in a form, and return the validated `model`.

        `model` is a flat pydantic model or dataclass, or the type of a single field. With `user_only`, an
        answer counts only after the user was shown the question; None means True for a confirmation. Raises
        ElicitationDeclined or ElicitationCancelled if the user does not answer.
        """
        return self.ask(self._questions.form(key, message, model, default, user_only))[0]

    def confirm(self, key: str, message: str, *, default: bool | UnsetType = UNSET) -> bool:
        """Ask the user yes or no, and return True only if the user was shown `message` and said yes.

        Returns False if the user declines. Raises ElicitationCancelled if the user dismisses the question.
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
        default: UnsetType | None = UNSET,
        poll_interval_ms: int | None = DEFAULT_POLL_INTERVAL_MS,
    ) -> None:
        """Send the user to a URL, and return once `done()` returns True.

        After the user has agreed, `done` is called every `poll_interval_ms` milliseconds for as long as the
        round lasts, or once in each round if that is None.
        """
        self.ask(self._questions.url(key, message, url, done, default, poll_interval_ms))

    def sample(
        self,
        key: str,
        messages: str | Sequence[Message],
        *,
        max_tokens: int,
        default: Sampled | UnsetType = UNSET,
        **options: Any,
    ) -> Sampled:
        """Ask the client's model. `options` are further CreateMessageRequest params under their MCP names."""
        return self.ask(self._questions.sample(key, messages, max_tokens, options, default))[0]

    def list_roots(
        self, key: str = "roots", *, default: tuple[Root, ...] | UnsetType = UNSET
    ) -> tuple[Root, ...]:
        """Return the roots that the client exposes."""
        return self.ask(self._questions.list_roots(key, default))[0]

    def request(self, key: str, method: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Send a reverse-DNS namespaced request to a client that declared that extension. Experimental."""
        return self.ask(self._questions.namespaced(key, method, params or {}))[0]

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
        """Ask several questions in one round, and return the answers in their order."""
        resolving, poll = self._questions.ask(questions), None
        while True:
            is_done = poll and self._is_done(*poll)  # outside of `try`: it may raise StopIteration, too
            try:
                poll = resolving.send(is_done)
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
        with running("question", self._prefix + question.key):
            return question.is_done()

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
        """Run a side effect once and journal its result, which must fit the function's return annotation.

        - If a worker is lost while the function runs, nothing is journaled, and the function runs again.
        - With `at_most_once`, in a task only, it does not run again: StepInterrupted is raised, also if the
          function raises. Let the function return what the tool has to know about a refusal.
        - With `retry`, a function that raises runs again. StepFailed is raised after its last attempt.
        - To pass arguments with these two names to the function, wrap it in a lambda.
        """
        step = self._step(name, function, kwargs)
        recorded = step.recorded()
        if recorded is not UNSET:
            return recorded
        step.check()
        if self._run.request_checkpoint():
            raise self._run.suspend()
        step.begin()
        while True:
            self._pause(*step.pause())
            with step.attempt():
                value = function(*args, **kwargs)
                step.refuse_awaitable(value)
                break
        return step.finish(value)

    def _pause(self, duration_ms: float, ends_pass: bool) -> None:
        if duration_ms:
            self._run.services.pause_ms(duration_ms)
        if ends_pass:
            raise self._run.suspend()

    def run_as_task(self, *, ttl_ms: int = 3_600_000) -> None:
        """Make the call a task, which continues without the client and lives for `ttl_ms` milliseconds.

        Does nothing if the call is a task already, or if the tool is registered with task="optional" and the
        client did not declare the tasks extension: the call then continues in rounds.
        """
        if self._request_task(ttl_ms):
            raise self._run.suspend()

    def sleep(self, key: str, duration_ms: int) -> None:
        """Pause a task for that time. No worker runs during the pause.

        If no queue triggers the workers, the task resumes when its client polls.
        """
        if self._begin_sleep(key, duration_ms):
            raise self._run.suspend()

    def checkpoint(self, *, needs_ms: float | None = None) -> None:
        """Return the state to the client if less than `needs_ms` is left; the client retries at once.

        Does so only after this round has journaled an entry, and not while replaying.
        """
        if self._run.request_checkpoint(needs_ms):
            raise self._run.suspend()

    def now(self, key: str) -> datetime:
        """Return the current time in UTC; a replay returns the same."""
        return self._now(key)

    def uuid(self, key: str) -> UUID:
        """Return a random UUID; a replay returns the same."""
        return self._uuid(key)

    def random(self, key: str) -> float:
        """Return a random float in [0, 1); a replay returns the same."""
        return self._random(key)

    def signed_link(self, key: str, url: str, *, ttl_ms: int = 3_600_000) -> str:
        """Return `url` with a token that is bound to this call and its principal, for `elicit_url`.

        The page at the URL checks the token with `Server.open_link` against its own signed-in user.
        """
        return self._signed_link(key, url, ttl_ms)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send `notifications/progress` if the client asked for it. A replay sends nothing."""
        self._run.notifications.progress(done, total, message, is_new=self._run.should_notify())

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send `notifications/message` if the client asked for that level. A replay sends nothing.

        Raises UsageError for a level that is not one of RFC 5424, and for data that is not JSON.
        """
        self._run.notifications.log(level, data, logger, is_new=self._run.should_notify())
