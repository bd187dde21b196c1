"""docs/clients.md shows what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from support.legacy_client import LegacyClient, text

PAGE = (Path(__file__).parents[2] / "docs/clients.md").read_text("utf-8")


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_the_example_is_asked_through_the_model_and_answered_as_shown() -> None:
    shown: dict[str, Any] = {}
    exec(block("python"), shown)
    client = LegacyClient(shown["server"])
    arguments = json.loads(block("json"))
    asked = client.call("new_database", name=arguments["name"])
    assert "How many CPUs has orders?" in text(asked)
    done = client.result("tools/call", name="new_database", arguments=arguments)
    assert done["structuredContent"] == {"name": "orders", "vcpus": 4}
