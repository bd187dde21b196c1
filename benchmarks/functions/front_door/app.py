"""Use a front door with one tool function behind it. The benchmark writes the catalog."""

from pathlib import Path

from mcp_roundtrip import FrontDoor

handler = FrontDoor("bench", Path(__file__).with_name("catalog.json")).lambda_handler
