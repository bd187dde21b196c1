"""Use the official SDK with Mangum, installed as its documentation says (`mcp[cli]`, which includes rich)."""

from mangum import Mangum
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

server = MCPServer("bench")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def handler(event, context):
    """Create an application per invocation: its session manager can start only once (python-sdk #3121)."""
    host = event["requestContext"]["domainName"]
    app = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(allowed_hosts=[host]),
    )
    return Mangum(app)(event, context)
