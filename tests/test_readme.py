"""What the README shows is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcp_roundtrip.testing import Player

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the README's tool where its test expects it."""
    (tmp_path / "functions/databases").mkdir(parents=True)
    (tmp_path / "functions/databases/app.py").write_text(blocks("python")[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tool_answers_as_shown_after_the_questions_shown(project: Path) -> None:
    play = Player(project / "functions/databases/app.py", always_replay=True)
    asked = play.call("new_database", {"name": "orders"})
    assert asked.question("size") == "How large should orders be?"
    confirm = asked.answer(size={"vcpus": 4})
    assert confirm.answer(keep=True).structured == json.loads(blocks("json")[0])


def test_the_test_shown_passes(project: Path) -> None:
    shown: dict[str, object] = {}
    exec(blocks("python")[1], shown)
    test = shown["test_a_database_is_provisioned"]
    assert callable(test)
    test()


def test_the_client_shown_is_python() -> None:
    compile(blocks("python")[2], "README.md", "exec")


def test_the_player_shown_in_writing_tools_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    guide = (ROOT / "docs/writing-tools.md").read_text("utf-8")
    shown = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[-1]
    exec(shown, {"Path": Path, "Player": Player})
