"""Use the official SDK without `rich`, with which the SDK formats its log lines for a terminal."""

import sys

sys.modules["rich"] = None  # its import fails as if it were not installed
sys.modules["rich.console"] = sys.modules["rich.logging"] = None

from implementations.mcp_mangum import handler  # noqa: E402 - rich must be blocked first

__all__ = ["handler"]
