"""The public MCP endpoint: answers discovery and lists, and forwards calls to the tools' functions."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

front_door = FrontDoor(
    "mcp-roundtrip-examples",
    Path(__file__).with_name("catalog.json"),
    title="mcp-roundtrip examples",
    description="Tools that ask during a call: weather, work items, databases, expenses, summaries.",
    instructions="The tools can ask questions during a call, and continue with the answers.",
)

handler = front_door.lambda_handler
