"""The pages about questions show what happens."""

import json
from typing import Any

from support.deployment import legacy
from support.documents import code_blocks

GUIDE, EXPLANATION = "docs/guides/asking.md", "docs/explanation/questions.md"


def test_the_example_is_asked_through_the_model_and_answered_as_shown():
    shown: dict[str, Any] = {}
    program, given = code_blocks(GUIDE, "python")[0], code_blocks(EXPLANATION, "json")[-1]
    exec(program, shown)
    client = legacy(shown["server"])
    arguments = json.loads(given)
    assert "How many CPUs has orders?" in client.text("new_database", name=arguments["name"])
    done = client.call("new_database", **arguments)
    assert done["structuredContent"] == {"name": "orders", "vcpus": 4}
