"""Use mcp-roundtrip with the settings that template.yaml gives a function."""

from mcp_roundtrip import Server

server = Server("bench")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


handler = server.lambda_handler
