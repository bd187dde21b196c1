"""docs/explanation/questions.md shows what happens."""

from __future__ import annotations

import json
from typing import Any

from support.documents import code_blocks
from support.legacy_client import LegacyClient, text

PAGE = "docs/explanation/questions.md"


def test_the_example_is_asked_through_the_model_and_answered_as_shown() -> None:
    shown: dict[str, Any] = {}
    [program], [given] = code_blocks(PAGE, "python"), code_blocks(PAGE, "json")
    exec(program, shown)
    client = LegacyClient(shown["server"])
    arguments = json.loads(given)
    asked = client.call("new_database", name=arguments["name"])
    assert "How many CPUs has orders?" in text(asked)
    done = client.result("tools/call", name="new_database", arguments=arguments)
    assert done["structuredContent"] == {"name": "orders", "vcpus": 4}
