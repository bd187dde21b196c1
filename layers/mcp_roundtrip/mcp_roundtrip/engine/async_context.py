"""The context of an asynchronous tool: the methods of `Context`, awaited where they journal or report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from msgspec import UNSET, UnsetType

from mcp_roundtrip.engine.context_base import T1, T2, T3, T4, CallInfo, ContextBase, P, T
from mcp_roundtrip.engine.missing_await import returns_context_call
from mcp_roundtrip.engine.pass_state import Run, running
from mcp_roundtrip.engine.question_channels import DEFAULT_POLL_INTERVAL_MS, Question
from mcp_roundtrip.errors import ElicitationDeclined

if TYPE_CHECKING:
    from mcp_roundtrip.engine.async_pass import Branches
    from mcp_roundtrip.engine.elicitation import ElicitUrl
    from mcp_roundtrip.engine.sampling_and_roots import Message, Root, Sampled
    from mcp_roundtrip.engine.steps import Retry


AsyncFunction = Callable[..., Awaitable[T]]


async def _await(call: Awaitable[T]) -> T:
    return await call


class AsyncContext(ContextBase):
    """Asks, runs steps and reports for an `async def` tool: the value of the parameter annotated with it.

    A question without an answer suspends its coroutine, and other branches continue. The round ends when
    every branch is suspended and every step in flight is journaled.
    """

    def __init__(self, run: Run, info: CallInfo, branches: Branches, prefix: str = "") -> None:
        super().__init__(run, info, prefix)
        self._branches = branches

    # -- branches -----------------------------------------------------------------------------------

    def branch(self, name: str) -> AsyncContext:
        """Return a context whose keys begin with `name` and a slash, for one task of a TaskGroup."""
        return AsyncContext(self._run, self._info, self._branches, f"{self._use_key(name)}/")

    @returns_context_call()
    async def gather(self, branches: Mapping[str, Callable[[AsyncContext], Awaitable[T]]]) -> dict[str, T]:
        """Run functions concurrently, each with a branch of that name; return their results by name."""
        if not isinstance(branches, Mapping) or not all(map(callable, branches.values())):
            raise self._run.usage_error(
                "gather takes a dict with a function for each branch; write `{name: function}`, and do not "
                "call the function: it gets the context of its branch"
            )
        calls = {name: work(self.branch(name)) for name, work in branches.items()}
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(_await(call)) for name, call in calls.items()}
        return {name: task.result() for name, task in tasks.items()}

    # -- questions ----------------------------------------------------------------------------------

    @overload
    async def elicit(
        self,
        key: str,
        message: str,
        model: type[T],
        *,
        default: T | UnsetType = UNSET,
        user_only: bool | None = None,
    ) -> T: ...
    @overload
    async def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any: ...
    @returns_context_call("question")
    async def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any:
        """See `Context.elicit`."""
        return (await self.ask(self._questions.form(key, message, model, default, user_only)))[0]

    @returns_context_call("question")
    async def confirm(self, key: str, message: str, *, default: bool | UnsetType = UNSET) -> bool:
        """See `Context.confirm`."""
        try:
            return await self.elicit(key, message, bool, default=default, user_only=True)
        except ElicitationDeclined:
            return False

    @returns_context_call("question")
    async def elicit_url(
        self,
        key: str,
        message: str,
        url: str,
        *,
        done: Callable[[], bool | Awaitable[bool]],
        default: UnsetType | None = UNSET,
        poll_interval_ms: int | None = DEFAULT_POLL_INTERVAL_MS,
    ) -> None:
        """See `Context.elicit_url`. `done` may be a coroutine function."""
        await self.ask(self._questions.url(key, message, url, done, default, poll_interval_ms))

    @returns_context_call("question")
    async def sample(
        self,
        key: str,
        messages: str | Sequence[Message],
        *,
        max_tokens: int,
        default: Sampled | UnsetType = UNSET,
        **options: Any,
    ) -> Sampled:
        """See `Context.sample`."""
        return (await self.ask(self._questions.sample(key, messages, max_tokens, options, default)))[0]

    @returns_context_call("question")
    async def list_roots(
        self, key: str = "roots", *, default: tuple[Root, ...] | UnsetType = UNSET
    ) -> tuple[Root, ...]:
        """See `Context.list_roots`."""
        return (await self.ask(self._questions.list_roots(key, default)))[0]

    @returns_context_call("question")
    async def request(
        self, key: str, method: str, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """See `Context.request`."""
        return (await self.ask(self._questions.namespaced(key, method, params or {})))[0]

    @overload
    async def ask(self, first: Question[T1], /) -> tuple[T1]: ...
    @overload
    async def ask(self, first: Question[T1], second: Question[T2], /) -> tuple[T1, T2]: ...
    @overload
    async def ask(
        self, first: Question[T1], second: Question[T2], third: Question[T3], /
    ) -> tuple[T1, T2, T3]: ...
    @overload
    async def ask(
        self, first: Question[T1], second: Question[T2], third: Question[T3], fourth: Question[T4], /
    ) -> tuple[T1, T2, T3, T4]: ...
    @overload
    async def ask(self, *questions: Question[Any]) -> tuple[Any, ...]: ...
    @returns_context_call("question")
    async def ask(self, *questions: Question[Any]) -> tuple[Any, ...]:
        """See `Context.ask`."""
        resolving, poll = self._questions.ask(questions), None
        while True:
            is_done = poll and await self._is_done(*poll)
            try:
                poll = resolving.send(is_done)
            except StopIteration as end:
                answers = end.value
                break
        if answers is None:
            await self._branches.suspend({self._prefix + question.key for question in questions})
        return tuple(answers)

    async def _is_done(self, question: ElicitUrl | None, after_ms: float) -> bool:
        await self._branches.pause(after_ms, ends_pass=False)
        if question is None:
            return False
        with running("question", self._prefix + question.key), self._branches.step_in_flight():
            done = question.done()
            return bool(await done if isinstance(done, Awaitable) else done)

    # -- effects ------------------------------------------------------------------------------------

    @overload
    async def step(
        self, name: str, function: AsyncFunction[T], /, *args: Any, at_most_once: bool, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[..., T], /, *args: Any, at_most_once: bool, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: AsyncFunction[T], /, *args: Any, retry: Retry | None, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[..., T], /, *args: Any, retry: Retry | None, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @returns_context_call("step")
    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """See `Context.step`. `function` may be a coroutine function; a plain one runs in the event loop."""
        step = self._step(name, function, kwargs)
        recorded = step.recorded()
        if recorded is not UNSET:
            return recorded
        step.check()
        if self._branches.unawaited:
            await self._branches.refuse_unawaited(step.key, (*args, *kwargs.values()))
        if self._run.request_checkpoint():
            await self._branches.suspend()
        step.begin()
        while True:
            await self._branches.pause(*step.pause())
            with step.attempt(), self._branches.step_in_flight(f"step {step.key!r}"):
                value = function(*args, **kwargs)
                result = await value if isinstance(value, Awaitable) else value
                break
        return step.finish(result)

    @returns_context_call()
    async def run_as_task(self, *, ttl_ms: int = 3_600_000) -> None:
        """See `Context.run_as_task`."""
        if self._request_task(ttl_ms):
            await self._branches.suspend()

    @returns_context_call("sleep")
    async def sleep(self, key: str, duration_ms: int) -> None:
        """See `Context.sleep`."""
        if self._begin_sleep(key, duration_ms):
            await self._branches.suspend()

    @returns_context_call()
    async def checkpoint(self, *, needs_ms: float | None = None) -> None:
        """See `Context.checkpoint`."""
        if self._run.request_checkpoint(needs_ms):
            await self._branches.suspend()

    @returns_context_call("recorded value")
    async def now(self, key: str) -> datetime:
        """See `Context.now`."""
        return self._now(key)

    @returns_context_call("recorded value")
    async def uuid(self, key: str) -> UUID:
        """See `Context.uuid`."""
        return self._uuid(key)

    @returns_context_call("recorded value")
    async def random(self, key: str) -> float:
        """See `Context.random`."""
        return self._random(key)

    @returns_context_call("signed link")
    async def signed_link(self, key: str, url: str, *, ttl_ms: int = 3_600_000) -> str:
        """See `Context.signed_link`."""
        return self._signed_link(key, url, ttl_ms)

    @returns_context_call()
    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """See `Context.progress`."""
        self._run.notifications.progress(done, total, message, is_new=self._run.should_notify())

    @returns_context_call()
    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """See `Context.log`."""
        self._run.notifications.log(level, data, logger, is_new=self._run.should_notify())
