"""The MCP server {{ cookiecutter.project_name }}. Each function with `@server.tool` is a tool."""

from mcp_roundtrip import Context, Server, one_of

ORDERS = {"A-1001": "shipped", "A-1002": "being packed"}  # call your own system here

server = Server("{{ cookiecutter.project_name }}")


@server.tool(annotations={"readOnlyHint": True})
def order_status(ctx: Context) -> str:
    """Return the status of one of the user's orders."""
    number = ctx.elicit("number", "Which order?", one_of(ORDERS))
    return f"{number} is {ORDERS[number]}."


handler = server.lambda_handler
