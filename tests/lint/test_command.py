"""The command `mcp-roundtrip lint`, and the code of this project under its rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mcp_roundtrip_lint.__main__ import main
from mcp_roundtrip_lint.checking import check_text
from support.documents import code_blocks
from support.project import ROOT

WRONG = """\
from mcp_roundtrip import Context

def ask(ctx: Context) -> None:
    ctx.confirm("sure", "Sure?")
    ctx.confirm("sure", "Really?")
"""

INTENDED = {
    ("docs/explanation/how-replay-works.md", "MRT001"),
    ("docs/guides/writing-tools.md", "MRT003"),
}
"""What documents show as wrong."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_findings_are_printed_by_line_and_make_the_exit_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "src/__pycache__").mkdir(parents=True)
    (folder / "src/.venv/lib").mkdir(parents=True)
    for name in ("app.py", "__pycache__/old.py", ".venv/lib/package.py"):
        (folder / "src" / name).write_text(WRONG)
    assert main([]) == 1
    shown = capsys.readouterr()
    [line] = shown.out.splitlines()
    assert line.startswith("src/app.py:5:17: MRT009 ")
    assert shown.err == "1 finding in 1 module\n"


def test_named_files_and_folders_are_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tools").mkdir()
    (folder / "tools/a.py").write_text("x = 1\n")
    (folder / "b.py").touch()
    assert main(["tools", "b.py"]) == 0
    assert capsys.readouterr().out == "no findings in 2 modules\n"


def test_the_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rules"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "MRT001  Time or randomness outside the context"


@pytest.mark.parametrize("arguments", [[], ["missing.py"], ["broken.py"]])
def test_what_cannot_be_read_makes_the_exit_status_2(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text("def (:\n")
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("start", "encoding"), [("\ufeff", "utf-8"), ("# -*- coding: latin-1 -*-\n", "latin-1")]
)
def test_a_module_is_read_in_the_encoding_that_it_declares(folder: Path, start: str, encoding: str) -> None:
    (folder / "app.py").write_bytes(f"{start}x = 'é'\n".encode(encoding))
    assert main(["app.py"]) == 0


def test_a_module_that_is_nested_too_deeply_makes_the_exit_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "app.py").write_text(f"x = {'+'.join(['1'] * 50_000)}\n")
    assert main(["app.py"]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_many_helpers_that_call_each_other_are_checked_in_a_short_time() -> None:
    numbers = range(20)
    helpers = [
        "\n".join(
            [f"def h{n}(ctx: Context) -> None:", *(f"    h{other}(ctx)" for other in numbers if other != n)]
        )
        for n in numbers
    ]
    text = "\n".join(["import time", "from mcp_roundtrip import Context", *helpers, "    time.time()\n"])
    assert check_text(Path("app.py"), text) == []


def test_a_module_is_read_and_never_run(folder: Path) -> None:
    (folder / "app.py").write_text(f"raise SystemExit(7)\n{WRONG}")
    assert main(["app.py"]) == 1


def test_the_functions_of_this_project_have_no_findings() -> None:
    application = ROOT / "development/mcp_roundtrip_cli/application"
    assert main([str(ROOT / "functions"), *map(str, application.glob("*/src"))]) == 0


def test_the_code_in_documents_is_right_where_it_is_not_shown_as_wrong() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    names = {str(path.relative_to(ROOT)) for path in documents} - {"docs/reference/lint.md"}
    found = {
        (finding.path.as_posix(), finding.rule)
        for name in names
        for code in code_blocks(name, "python")
        if _is_module(code)
        for finding in check_text(Path(name), code)
    }
    assert found == INTENDED


def _is_module(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:  # a page may show a part of a statement
        return False
    return True
