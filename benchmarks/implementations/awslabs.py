"""Use the MCP handler of awslabs without a session store."""

from awslabs.mcp_lambda_handler import MCPLambdaHandler

server = MCPLambdaHandler("bench")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


handler = server.handle_request
