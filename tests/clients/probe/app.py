"""Tools that find the limits of a client: many questions, rounds without a question, a page."""

from mcp_roundtrip import Context, Server

server = Server("probe", channels=())

LONGER_THAN_A_ROUND_MS = 60_000


@server.tool
def many_questions(ctx: Context, count: int) -> dict[str, list[str]]:
    """Ask one question after the other."""
    numbers = range(1, count + 1)
    return {"answers": [ctx.elicit(f"question {number}", f"Question {number}?", str) for number in numbers]}


@server.tool
def pauses(ctx: Context, count: int) -> dict[str, list[int]]:
    """Return the state without a question, as a call does that runs out of time."""
    done = []
    for number in range(1, count + 1):
        done.append(ctx.step(f"step {number}", int, number))
        ctx.checkpoint(needs_ms=LONGER_THAN_A_ROUND_MS)
    return {"done": done}


@server.tool
def visit(ctx: Context, url: str) -> dict[str, str]:
    """Send the user to a page."""
    ctx.elicit_url("page", "Visit the page.", url, done=lambda: True)
    return {"visited": url}


handler = server.lambda_handler
