"""docs/explanation/questions.md shows what happens."""

from __future__ import annotations

import json
from typing import Any

from support.deployment import legacy
from support.documents import code_blocks

PAGE = "docs/explanation/questions.md"


def test_the_example_is_asked_through_the_model_and_answered_as_shown() -> None:
    shown: dict[str, Any] = {}
    [program], [given] = code_blocks(PAGE, "python"), code_blocks(PAGE, "json")
    exec(program, shown)
    client = legacy(shown["server"])
    arguments = json.loads(given)
    assert "How many CPUs has orders?" in client.text("new_database", name=arguments["name"])
    done = client.call("new_database", **arguments)
    assert done["structuredContent"] == {"name": "orders", "vcpus": 4}
