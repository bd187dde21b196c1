"""A front door before the conformance server, for the official suite to go through."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

front_door = FrontDoor("conformance", Path(__file__).with_name("catalog.json"))

handler = front_door.lambda_handler
