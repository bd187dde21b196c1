import ast
import re
from pathlib import Path

import pytest

from mcp_roundtrip_tools.lint.checking import check_text, main
from support.documents import code_blocks
from support.project import ROOT

WRONG = """\
from mcp_roundtrip import Context

def ask(ctx: Context) -> None:
    ctx.confirm("sure", "Sure?")
    ctx.confirm("sure", "Really?")
"""

INTENDED = {("docs/explanation/how-replay-works.md", "MRT001")}
"""What documents show as wrong."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_findings_are_printed_by_line_and_make_the_exit_status_1(folder, capsys):
    (folder / "src/__pycache__").mkdir(parents=True)
    (folder / "src/.venv/lib").mkdir(parents=True)
    (folder / "src/node_modules").mkdir()
    for name in ("app.py", "__pycache__/old.py", ".venv/lib/package.py", "node_modules/gyp.py"):
        (folder / "src" / name).write_text(WRONG)
    assert main([]) == 1
    shown = capsys.readouterr()
    [line] = shown.out.splitlines()
    assert line.startswith("src/app.py:5:17: MRT009 ")
    assert re.findall(r"\d+", shown.err) == ["1", "1"]


def test_named_files_and_folders_are_checked(folder, capsys):
    (folder / "tools").mkdir()
    (folder / "tools/a.py").write_text("x = 1\n")
    (folder / "b.py").touch()
    assert main(["tools", "b.py"]) == 0
    assert "2 modules" in capsys.readouterr().out


def test_the_rules_are_listed(capsys):
    assert main(["--rules"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("MRT001  Time ")


def test_without_an_argument_some_folder_has_to_have_modules(folder, capsys):
    assert main([]) == 2
    assert "functions or src" in capsys.readouterr().err
    (folder / "src").mkdir()
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("error: src: ")


@pytest.mark.parametrize("environment", [".venv", "venv"])
def test_a_named_folder_without_modules_makes_the_exit_status_2(folder, environment, capsys):
    (folder / "web" / environment).mkdir(parents=True)
    (folder / "web" / environment / "pyvenv.cfg").touch()
    (folder / "web" / environment / "package.py").touch()
    (folder / "app.py").touch()
    assert main(["web"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err[:12]) == ("", "error: web: ")
    assert main(["web", "app.py"]) == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "bad.py: cannot"),
        (b"x = 1\ndef (:\n", "bad.py:2: is not"),
        (b"x = 1\n\n# \xe9\n", "bad.py: is not"),
        (b"# coding: klingon\n", "bad.py: is not"),
        (b"x\0 = 1\n", "bad.py: is not"),
        (b"x = " + b"+".join([b"1"] * 200_000), "bad.py: is nested"),
    ],
    ids=["missing", "syntax", "encoding", "unknown encoding", "null", "nested"],
)
def test_a_module_that_cannot_be_read_is_reported_and_the_others_are_checked(
    folder, content, expected, capsys
):
    if content is not None:
        (folder / "bad.py").write_bytes(content)
    (folder / "wrong.py").write_text(WRONG)
    assert main(["bad.py", "wrong.py"]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("wrong.py:5:17: MRT009 ")
    error, summary = shown.err.splitlines()
    assert error.startswith(f"error: {expected}")
    assert re.findall(r"\d+", summary) == ["1", "1"]
    assert main(["bad.py"]) == 2
    assert capsys.readouterr().err == f"{error}\n"


@pytest.mark.parametrize(
    ("start", "encoding"), [("\ufeff", "utf-8"), ("# -*- coding: latin-1 -*-\n", "latin-1")]
)
def test_a_module_is_read_in_the_encoding_that_it_declares(folder, start, encoding):
    (folder / "app.py").write_bytes(f"{start}x = 'é'\n".encode(encoding))
    assert main(["app.py"]) == 0


def test_many_helpers_that_call_each_other_are_checked_in_a_short_time():
    numbers = range(20)
    helpers = [
        "\n".join(
            [f"def h{n}(ctx: Context) -> None:", *(f"    h{other}(ctx)" for other in numbers if other != n)]
        )
        for n in numbers
    ]
    text = "\n".join(["import time", "from mcp_roundtrip import Context", *helpers, "    time.time()\n"])
    assert check_text(Path("app.py"), text) == []


def test_helpers_and_variables_that_refer_to_each_other_are_checked_in_a_short_time():
    numbers = range(20)
    helpers = [
        "\n".join([f"def h{n}():", f"    return {' + '.join(f'h{m}()' for m in numbers if m != n)}"])
        for n in numbers
    ]
    variables = [f"v{n} = v{(n + 1) % 20}.x" for n in numbers]
    sums = [f"    s{n + 1} = s{n} + s{n}" for n in range(60)]
    total = ["def total():", "    s0 = 1", *sums, "    return s60"]
    asked = '    ctx.confirm("k", f"{h0()} {total()} {v0.post()} {s20}")'
    differences = [each.replace("+", "-") for each in sums[:20]]
    tool = ["def ask(ctx: Context, s0: object) -> None:", *differences, asked]
    text = "\n".join(["from mcp_roundtrip import Context", *helpers, *variables, *total, *tool, ""])
    assert check_text(Path("app.py"), text) == []


def test_a_module_is_read_and_never_run(folder):
    (folder / "app.py").write_text(f"raise SystemExit(7)\n{WRONG}")
    assert main(["app.py"]) == 1


def test_the_functions_of_this_project_have_no_findings():
    application = ROOT / "development/mcp_roundtrip_tools/new/application"
    assert main([str(ROOT / "functions"), *map(str, application.glob("*/src"))]) == 0


def test_the_code_in_documents_is_right_where_it_is_not_shown_as_wrong():
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
