from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_roundtrip_tools.growth.change import write
from mcp_roundtrip_tools.new.__main__ import render
from support.project import contents


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a new application."""
    write({tmp_path / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    return tmp_path


def assert_refused(
    project: Path, change: tuple[str, str, str], command: Callable[[list[str]], int], *arguments: str
) -> None:
    """Assert that nothing is written after a change of a file: its path, a text, and its replacement."""
    path, before, after = change
    changed = project / path
    assert before in changed.read_text("utf-8")
    changed.write_text(changed.read_text("utf-8").replace(before, after))
    found = contents(project)
    assert command([*arguments, "--project", str(project)]) == 2
    assert contents(project) == found
