"""The public MCP endpoint: answers discovery and lists, and forwards calls to the tools' functions."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

front_door = FrontDoor(
    "mcp-roundtrip-examples",
    Path(__file__).with_name("catalog.json"),
    title="mcp-roundtrip examples",
    instructions="Tools that ask back: answer their questions, and they go on where they stopped.",
)

handler = front_door.lambda_handler
