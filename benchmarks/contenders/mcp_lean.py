"""The official SDK without `rich`: where it is installed, the SDK formats its log lines for a terminal."""

import sys

sys.modules["rich"] = None  # an import of it fails, as if it were not installed
sys.modules["rich.console"] = sys.modules["rich.logging"] = None

from contenders.mcp_mangum import handler  # noqa: E402 - after rich is out of reach

__all__ = ["handler"]
