"""What docs/connecting.md shows, at another URL."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs/connecting.md").read_text("utf-8")
SHOWN_URL = "http://127.0.0.1:3000/mcp"


def blocks(language: str) -> list[str]:
    """The page's code in this language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def inspector_configuration(url: str) -> Any:
    """The configuration of MCP Inspector that is shown."""
    [shown] = blocks("json")
    assert SHOWN_URL in shown
    return json.loads(shown.replace(SHOWN_URL, url))
