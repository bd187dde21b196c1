import ast
import sys
from pathlib import Path

import pytest

from mcp_roundtrip_tools import __main__ as command
from mcp_roundtrip_tools.__main__ import COMMANDS, main
from mcp_roundtrip_tools.call.errors import Status
from mcp_roundtrip_tools.template.model import TemplateError
from support.interpreters import run_program
from support.scripted_server import message, scripted


def test_the_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, each in COMMANDS.items():
        assert f"\n  {name} " in shown
        assert each.text in shown


def test_a_terminal_without_utf_8_gets_escapes():
    program = "from mcp_roundtrip_tools.__main__ import main; main(['--help'])"
    assert r"[OPTION \u2026]" in run_program(program, PYTHONIOENCODING="ascii").stdout


def test_a_command_that_could_ask_works_with_a_closed_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["call", "--url", "http://127.0.0.1:9/mcp"]) == Status.UNREACHABLE
    assert capsys.readouterr().err.startswith("error: ")


def test_a_command_prints_its_result_with_a_closed_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    tools = [{"name": "make", "inputSchema": {"type": "object"}}]
    listed = {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}
    with scripted(message(1, result=listed)) as server:
        assert main(["call", "--url", f"{server.url}/mcp"]) == Status.RESULT
    sys.stderr.close()
    assert capsys.readouterr().out == "make\n"


@pytest.mark.parametrize("arguments", [[], ["deplyo"]])
def test_the_commands_are_listed_without_a_known_one(arguments, capsys):
    assert main(arguments) == 2
    assert "\n  new-tool " in capsys.readouterr().err


def test_a_command_shows_its_own_name_in_its_help(capsys):
    for name in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: mcp-roundtrip {name} ")


def test_the_extra_of_a_missing_package_is_named(monkeypatch, capsys):
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'yaml.nodes'", name="yaml.nodes")

    monkeypatch.setattr(command, "import_module", missing)
    assert main(["run"]) == 2
    assert "pip install 'mcp-roundtrip[local]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (TemplateError("no template"), 2, "error: no template\n"),
        (PermissionError(13, "denied", "app.py"), 2, "error: [Errno 13] denied: 'app.py'\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (EOFError(), 130, "\n"),
    ],
)
def test_a_command_that_a_user_can_correct_or_ends_has_no_traceback(
    error, status, shown, monkeypatch, capsys
):
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(command, "import_module", fail)
    assert main(["deploy"]) == status
    assert capsys.readouterr().err == shown


def test_a_new_application_imports_nothing_of_the_extra_local():
    program = "import sys, mcp_roundtrip_tools.__main__, mcp_roundtrip_tools.new.command; print(*sys.modules)"
    done = run_program(program)
    assert not command.LOCAL & set(done.stdout.split())


def test_a_package_that_a_command_imports_is_the_layer_s_or_of_the_extra_local():
    nodes = [
        node
        for path in Path(command.__file__).parent.rglob("*.py")
        if "{{" not in str(path)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]
    imports = {
        each.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for each in node.names
    }
    imports |= {str(node.module).partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    of_layer = {"cryptography", "jsonschema_rs", "jwt", "msgspec", "pydantic"}
    of_package = {name for name in imports if name.startswith("mcp_roundtrip")}
    assert imports - sys.stdlib_module_names - of_package - of_layer - command.LOCAL == set()


@pytest.mark.parametrize("arguments", [["new-tool", "find_orders"], ["events"]])
def test_a_command_outside_an_application_says_where_it_belongs(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "WARNING")  # events sets it, and this process runs other tests
    assert main(arguments) == 2
    assert "no template.yaml:" in capsys.readouterr().err
