"""The server that the official conformance suite is run against; names, keys and texts are the suite's."""

from dataclasses import dataclass

from features import server

from mcp_roundtrip import Context, Elicit, ListRoots, ProtocolError, Sample, ToolError


@dataclass
class Name:
    name: str


@dataclass
class Color:
    color: str


@dataclass
class Confirmation:
    ok: bool


@dataclass
class UserContext:
    context: str


@server.tool
def test_streaming_elicitation(ctx: Context) -> str:
    """Ask while a stream could be open."""
    return f"Hello, {ctx.elicit('user_name', 'What is your name?', Name).name}!"


@server.tool
def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask the user."""
    return f"Hello, {ctx.elicit('user_name', 'What is your name?', Name).name}!"


@server.tool
def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model."""
    return ctx.sample("capital_question", "What is the capital of France?", max_tokens=100).text


@server.tool
def test_input_required_result_list_roots(ctx: Context) -> list[str]:
    """Ask for the roots."""
    return [root.uri for root in ctx.list_roots("client_roots")]


@server.tool
def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask, with a state to bring back."""
    return f"state-ok: {ctx.elicit('confirm', 'Please confirm', Confirmation).ok}"


@server.tool
def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask the user, the model and for the roots, in one round."""
    user, greeting, roots = ctx.ask(
        Elicit("user_name", "What is your name?", Name),
        Sample("greeting", "Generate a greeting", 50),
        ListRoots("client_roots"),
    )
    return f"{greeting.text} {user.name}, {len(roots)} roots"


@server.tool
def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask twice, one after the other."""
    name = ctx.elicit("step1", "Step 1: What is your name?", Name).name
    color = ctx.elicit("step2", "Step 2: What is your favorite color?", Color).color
    return f"{name} likes {color}."


@server.tool
def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask, with a state that must come back as it was."""
    return f"state-ok: {ctx.elicit('confirm', 'Please confirm', Confirmation).ok}"


@server.tool
def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask whom the client lets a server ask."""
    if ctx.supports("sampling"):
        return ctx.sample("greeting", "Generate a greeting", max_tokens=50).text
    return f"Hello, {ctx.elicit('user_name', 'What is your name?', Name).name}!"


@server.prompt()
def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask the user, for a prompt."""
    said = ctx.elicit("user_context", "What context should the prompt use?", UserContext)
    return f"Context: {said.context}"


@server.tool
def greet(name: str) -> str:
    """Greet, at once."""
    return f"Hello, {name}!"


@server.tool(task="optional")
def slow_compute(ctx: Context, seconds: float, label: str = "") -> str:
    """Take some seconds."""
    ctx.run_as_task(ttl_ms=600_000)
    if ctx.in_task and seconds:
        ctx.sleep("compute", int(seconds * 1000))
    return f"Computed {label}."


@server.tool(task="required")
def failing_job(ctx: Context) -> str:
    """Fail as a tool does."""
    ctx.run_as_task()
    raise ToolError("This job intentionally fails for testing")


@server.tool(task="required")
def protocol_error_job(ctx: Context) -> str:
    """Fail as a request does."""
    ctx.run_as_task()
    raise ProtocolError(-32603, "This job intentionally breaks for testing")


@dataclass
class Confirm:
    confirm: bool


@dataclass
class NameAndConfirm:
    name: str
    confirm: bool


@server.tool(task="required")
def confirm_delete(ctx: Context, filename: str) -> str:
    """Ask before deleting."""
    ctx.run_as_task()
    if ctx.elicit("confirm", f"Delete {filename}?", Confirm).confirm:
        return f"Deleted {filename}."
    return f"Kept {filename}."


@server.tool(task="required")
def multi_input(ctx: Context) -> str:
    """Ask two things side by side."""
    ctx.run_as_task()
    first, second = ctx.ask(
        Elicit("first", "Who is the first?", NameAndConfirm),
        Elicit("second", "Who is the second?", NameAndConfirm),
    )
    return f"{first.name} and {second.name}"


@server.tool(task="optional")
def test_tool_with_task(ctx: Context) -> str:
    """Ask, and go on as a task."""
    name = ctx.elicit("user_name", "What is your name?", Name).name
    ctx.run_as_task()
    return f"Hello, {name}!"


handler = server.lambda_handler
worker = server.worker_handler
