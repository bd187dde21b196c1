"""What a tool can read from its context, and the keys and references that it makes."""

import asyncio
from itertools import count
from typing import Any

from mcp_roundtrip import AsyncContext, Context, Principal
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcomes import Done
from support.passes import AsyncPasses, Passes, accept, value


def test_a_tool_can_read_principal_client_and_lambda_context():
    lambda_context = object()
    info = CallInfo(Principal("jwt", "alice"), {"name": "client"}, lambda_context)

    def body(ctx: Context) -> list[Any]:
        return [ctx.principal, ctx.client, ctx.lambda_context, ctx.remaining_ms, ctx.supports("roots")]

    outcome = Passes(body, {"roots": {}}, remaining_ms=1234, info=info)()
    assert outcome == Done([Principal("jwt", "alice"), {"name": "client"}, lambda_context, 1234, True])


def test_a_tool_can_pass_on_the_trace_context_of_its_client():
    traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
    call = Passes(lambda ctx: ctx.trace.traceparent, info=CallInfo(trace={"traceparent": traceparent}))
    assert call() == Done(traceparent)


def test_a_reference_is_equal_in_equal_calls_but_an_idempotency_key_is_not():
    times = count()

    def body(ctx: Context) -> list[str]:
        ctx.step("began", lambda: next(times))
        keys = [ctx.idempotency_key("approval"), ctx.idempotency_key("other")]
        return [ctx.reference("approval"), ctx.reference("other"), *keys]

    one, other = value(Passes(body)()), value(Passes(body, journal=Journal("run-2"))())
    assert one[:2] == other[:2]
    assert len({*one, *other}) == 6
    assert all(len(each) == 32 for each in one)


def test_a_reference_depends_only_on_the_answers_before_it():
    def body(ctx: Context) -> str:
        amount = ctx.elicit("amount", "How much?", int)
        reference = ctx.reference("approval")
        ctx.elicit("note", f"A note for {amount}?", str)
        return reference

    def reference(amount: int, note: str) -> str:
        return str(value(Passes(body)(amount=accept(amount), note=accept(note))))

    assert reference(5, "a") == reference(5, "b") != reference(5_000, "a")


def test_anonymous_callers_have_different_references():
    first = Passes(lambda ctx: ctx.reference("approval"), identity=None)
    second = Passes(lambda ctx: ctx.reference("approval"), identity=None, journal=Journal("run-2"))
    assert value(first()) == value(first()) != value(second())


def test_the_reference_of_a_branch_does_not_depend_on_answers_of_other_branches():
    async def body(ctx: AsyncContext) -> str:
        async def size(branch: AsyncContext) -> str:
            return str(await branch.elicit("size", "How large?", int))

        async def refer(branch: AsyncContext) -> str:
            await asyncio.sleep(0)
            return branch.reference("approval")

        return (await ctx.gather({"a": size, "ab": refer}))["ab"]

    small, large = (AsyncPasses(body)(**{"a/size": accept(size)}) for size in (1, 2))
    assert value(small) == value(large)
