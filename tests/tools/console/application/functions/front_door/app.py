"""The front door of the console's tests."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

front_door = FrontDoor("console-tests", Path(__file__).with_name("catalog.json"), title="Console tests")

handler = front_door.lambda_handler
