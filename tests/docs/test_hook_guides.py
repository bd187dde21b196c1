"""The examples of the guides about hooks and shared set-up run, each in its order on the page."""

from __future__ import annotations

from typing import Any

import pytest

from support.documents import code_blocks


@pytest.mark.parametrize("page", ["hooks.md", "shared-setup.md"])
def test_the_examples_run(page: str) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    for number, block in enumerate(code_blocks(f"docs/guides/{page}", "python")):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)
