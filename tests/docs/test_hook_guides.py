"""The examples of the guides about hooks and shared set-up run, each in its order on the page."""

from __future__ import annotations

from typing import Any

import pytest

from support.documents import code_blocks


@pytest.mark.parametrize(("page", "starts"), [("hooks.md", [0, 2]), ("shared-setup.md", [0])])
def test_the_examples_run(page: str, starts: list[int]) -> None:
    """Each of `starts` begins a new module."""
    namespace: dict[str, Any] = {}
    for number, block in enumerate(code_blocks(f"docs/guides/{page}", "python")):
        if number in starts:
            namespace = {"__name__": f"example_{number}"}
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)
