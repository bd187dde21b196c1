"""Spans of a call over the front door, its owner, all rounds and the worker of its task."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from itertools import cycle

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from mcp_roundtrip import AsyncContext, Call, Context, Retry, Server, ToolError
from mcp_roundtrip.observing.opentelemetry_tracer import Tracer
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_TRACEPARENT
from mcp_roundtrip.protocol.session_id import SessionId
from support.client_requests import ASKABLE, accepted
from support.deployment import Deployment
from support.interpreters import run_program
from support.messages import META
from support.project import ROOT
from support.traces import MemoryTracer, mermaid, tree

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


def make_server():
    server = Server("owner")
    failures = iter([True])

    def charge() -> str:
        if next(failures, False):
            raise ConnectionError("visa 4111")
        return "receipt"

    @server.tool(task="optional")
    def book(ctx: Context, place: str) -> str:
        """Ask twice, and finish as a task."""
        ctx.step("reserve", lambda: "seat")
        size = ctx.elicit("size", "How many?", int)
        name = ctx.elicit("name", "Which name?", str)
        ctx.run_as_task()
        ctx.step("charge", charge, retry=Retry(delay_ms=1))
        return f"{place} {size} {name}"

    @server.tool
    def refuse() -> str:
        raise ToolError("closed")

    @server.tool
    def break_down() -> str:
        raise LookupError("visa 4111")

    return server


def traced(server, x_ray=None):
    return Deployment(server, through_door=True, tracer=MemoryTracer(x_ray))


@pytest.fixture
def deployment():
    return traced(make_server())


def book(*views, metas=({}, {}, {})):
    """Make the three rounds of a call, each with its view of a deployment, and let a worker finish."""
    params = {"arguments": {"place": "Hyderabad"}}
    answers = [("size", 4), ("name", "Ada"), ("", None)]
    for deployment, meta, (key, value) in zip(cycle(views), metas, answers, strict=False):
        declared = {**META, META_CLIENT_CAPABILITIES: ASKABLE, **meta}
        result = deployment.post_call("book", meta=declared, **params)["result"]
        params |= {"requestState": result.get("requestState"), "inputResponses": {key: accepted(value)}}
    assert result["resultType"] == "task"
    views[0].run_worker()


def test_fields_of_hooks_are_attributes_of_the_span_of_the_pass(deployment):
    @deployment.server.around
    def tenant(call: Call) -> Iterator[None]:
        call.add_fields(tenant="acme", size=2)
        yield

    @deployment.server.around
    async def ended(call: Call) -> AsyncIterator[None]:
        yield
        call.add_fields(ended=call.outcome or "")

    deployment.post_call("refuse")
    [span] = deployment.tracer.named("pass refuse")
    fields = {name[20:]: value for name, value in span.attributes.items() if ".field." in name}
    assert fields == {"tenant": "acme", "size": 2, "ended": "tool_error"}


def test_the_documented_picture_is_that_of_real_spans_and_no_value_of_a_call_is_in_them(deployment):
    """All passes are in the trace of the first round, and linked to their rounds."""
    book(deployment)
    page = (ROOT / "docs/explanation/traces.md").read_text("utf-8")
    assert page.split("```mermaid\n")[1].split("\n```")[0] == mermaid(deployment.tracer.spans)
    assert deployment.tracer.flushed == len(deployment.tracer.spans), "the worker ends with a flush"
    deployment.post_call("break_down")
    assert deployment.tracer.flushed == len(deployment.tracer.spans), "and so does a request"
    text = "".join(span.to_json() for span in deployment.tracer.spans)
    assert "LookupError" in text
    values = ("Hyderabad", "Ada", "seat", "receipt", "visa", "eyJ")
    assert [value for value in values if value in text] == []
    assert not any(span.events for span in deployment.tracer.spans), "exceptions quote arguments"


@pytest.mark.parametrize(("flags", "written"), [("00", "00"), ("01", "01"), ("02", "00"), ("03", "01")])
def test_a_span_context_has_only_the_flag_that_earlier_versions_read(flags, written):
    tracer = MemoryTracer()
    with tracer.span("message", SpanKind.SERVER, {}, parent=f"00-{TRACE}-{SPAN}-{flags}"):
        assert (tracer.current() or "")[-3:] == f"-{written}"


def test_a_client_that_sends_one_trace_context_has_everything_in_its_trace(deployment):
    book(deployment, metas=[{META_TRACEPARENT: TRACEPARENT}] * 3)
    spans = deployment.tracer.spans
    assert {span.context.trace_id for span in spans} == {int(TRACE, 16)}
    front_door = [span for span in spans if span.parent.span_id == int(SPAN, 16)]
    assert [span.name for span in front_door] == ["tools/call book"] * 3
    assert spans[0] is front_door[0]


def test_the_header_of_x_ray_is_the_parent_if_it_is_sampled_and_log_lines_have_the_ids():
    root = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8"
    for sampled, is_parent in ((1, True), (0, False)):
        deployment = traced(make_server(), f"{root};Sampled={sampled}")
        deployment.post_call("refuse")
        first, tags = deployment.tracer.spans[0], deployment.observer.tags
        assert (first.parent is not None) is is_parent
        assert (first.context.trace_id == int("5759e988bd862e3fe1be46a994272793", 16)) is is_parent
        assert tags["trace_id"] == f"{first.context.trace_id:032x}"
        assert tags["span_id"] in {f"{span.context.span_id:016x}" for span in deployment.tracer.spans}


def test_the_current_span_of_the_function_is_the_parent(deployment):
    with deployment.tracer.provider.get_tracer("adot").start_as_current_span("handler"):
        deployment.post("tools/list")
    assert tree(deployment.tracer.spans) == ["A handler", "A   tools/list"]


CONVENTIONS = json.loads((ROOT / "tests/server/mcp_span_conventions.json").read_text("utf-8"))


def check_conventions(span, given):
    """Check a server span. `given` says which conditions of the conditionally required attributes hold."""
    attributes, expected = dict(span.attributes or {}), CONVENTIONS["attributes"]
    own = {name for name in attributes if name.startswith("mcp_roundtrip.")}
    assert attributes.keys() - own <= expected.keys()
    required = {name for name, level in expected.items() if level == "required"}
    assert required <= attributes.keys()
    for name, level in expected.items():
        if level == "conditionally_required":
            assert (name in attributes) is given.get(name, False), name
    assert (span.status.status_code is StatusCode.ERROR) is ("error.type" in attributes)
    assert span.status.description is None
    assert span.kind is SpanKind.SERVER


@pytest.mark.parametrize("tool", ["refuse", "break_down", "unknown"])
def test_a_message_has_the_attributes_of_the_conventions(deployment, tool):
    is_known = tool != "unknown"
    deployment.post_call(tool)
    span = deployment.tracer.spans[is_known]
    assert span.name == (f"tools/call {tool}" if is_known else "tools/call")
    assert span.attributes["error.type"] == ("tool_error" if is_known else "-32602")
    assert span.attributes.get("rpc.response.status_code") == (None if is_known else "-32602")
    given = {"gen_ai.tool.name": is_known, "rpc.response.status_code": not is_known}
    check_conventions(span, {"error.type": True, "jsonrpc.request.id": True, **given})


def test_prompts_and_resources_are_named_without_the_values_of_a_request():
    server = Server("owner")

    @server.prompt
    def greeting(card: str) -> str:
        return card

    @server.resource("cards://{card}/limit")
    def limit(card: str) -> str:
        return card

    deployment = traced(server)
    deployment.post("prompts/get", name="greeting", arguments={"card": "visa-4111"})
    deployment.post("resources/read", uri="cards://visa-4111/limit")
    door, resource = deployment.tracer.spans[0], deployment.tracer.spans[3]
    assert (door.name, door.attributes["gen_ai.prompt.name"]) == ("prompts/get greeting", "greeting")
    assert resource.name == "resources/read"
    assert resource.attributes["mcp.resource.uri"] == "cards://{card}/limit"
    check_conventions(resource, {"jsonrpc.request.id": True, "mcp.resource.uri": True})
    assert "visa-4111" not in "".join(span.to_json() for span in deployment.tracer.spans)


def test_a_session_of_an_earlier_client_is_a_digest(deployment):
    session = SessionId.create("2025-11-25", {"name": "old", "version": "1"}, {}, secrets.token_bytes(16))
    client = deployment.by(version="2025-11-25", session_id=session.encode())
    client.send(client.body("tools/call", name="refuse"))
    spans = deployment.tracer.spans
    digests = {span.attributes["mcp.session.id"] for span in spans if span.kind is SpanKind.SERVER}
    assert len(digests) == 1
    assert session.nonce not in digests | {session.encode()}
    assert spans[0].attributes["mcp.protocol.version"] == "2025-11-25"


def test_steps_of_async_tools_are_in_the_span_of_their_pass():
    server = Server("owner")

    @server.tool
    async def both(ctx: AsyncContext) -> list[str]:
        async def read() -> str:
            await asyncio.sleep(0)
            return trace.get_current_span().name

        return [
            await ctx.step("one", read),
            *await asyncio.gather(ctx.step("two", read), ctx.step("three", read)),
        ]

    deployment = traced(server)
    for _ in range(2):  # asyncio keeps the context in which its loop was started
        result = deployment.call("both")["structuredContent"]
        assert result == ["step one", "step two", "step three"]
    steps = [span for span in deployment.tracer.spans if span.name.startswith("step")]
    parents = [span.parent.span_id for span in steps if span.parent]
    first, second = (span.context.span_id for span in deployment.tracer.named("pass both"))
    assert parents == [first] * 3 + [second] * 3


def test_a_round_that_is_not_traced_passes_the_trace_on_and_untraced_calls_work(deployment):
    untraced = deployment.by(tracer=None)
    book(untraced)
    assert deployment.tracer.spans == []
    book(
        Deployment(make_server(), through_door=True, tracer=Tracer(trace.NoOpTracerProvider(), lambda: None))
    )
    book(deployment, untraced, deployment)
    first, third = deployment.tracer.named("pass book")
    assert first.context.trace_id == third.context.trace_id


WHOLE_CALL = """
import os, sys
from mcp_roundtrip import Context, Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip_testing import Player
from mcp_roundtrip_testing.player import WITH_TASKS
server = Server("untraced")
@server.tool(task="optional")
def book(ctx: Context) -> str:
    size = ctx.elicit("size", "How many?", int)
    ctx.run_as_task()
    return ctx.step("charge", lambda: f"{size} seats")
assert Player(server, WITH_TASKS).call("book", size=4).task.text == "4 seats"
os.environ |= {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
given = {"MCP_AUTH_MODE": "none", "MCP_TASK_TABLE": "tasks", "MCP_AUDIENCE": "https://a.example"}
wiring.make_ports(load_settings(given)).tasks()
print(*sys.modules)
"""


def test_without_traces_no_module_of_traces_is_loaded_by_a_call_with_a_task_and_its_clients_of_aws():
    loaded = run_program(WHOLE_CALL).stdout.split()
    ours = ["observing.opentelemetry_tracer", "server.spans"]
    found = [f"mcp_roundtrip.{name}" for name in ours if f"mcp_roundtrip.{name}" in loaded]
    assert found + [name for name in loaded if name.startswith("opentelemetry")] == []
    assert {"mcp_roundtrip.server.task_carrier", "mcp_roundtrip.tasks.worker"} <= set(loaded)
