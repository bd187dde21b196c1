import io
import os
import re
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from mcp_roundtrip_tools.invoke.command import main
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.served_application import serve
from tools.invoke.conftest import Invoke

STAYS = """
import os, time

def handler(event, context):
    print("pid", os.getpid())
    time.sleep(20)
"""


@pytest.fixture
def event(tmp_path):
    file = tmp_path / "event.json"
    file.write_text('{"a": "\\u0085"}')
    return file


def test_the_response_is_printed_to_stdout_and_the_log_to_stderr(invoke, event):
    assert invoke("Echo", "-e", event)["event"] == {"a": "\x85"}
    opening, *printed = invoke.log
    assert "Echo" in opening
    assert printed == ["echo {'a': '\\x85'}"]


def test_a_signal_ends_the_function_and_is_named_by_the_exit_status(template, port, event):
    (template.parent / "echo/app.py").write_text(STAYS)
    options = ["-e", event, "--port", str(port), "--template", template]
    program = [sys.executable, "-m", "mcp_roundtrip_tools", "invoke", "Echo", *options]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        pid = next(int(line.split()[1]) for line in process.stderr if line.startswith("pid "))
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("function", "error"), [("Odd", "KeyError"), ("Broken", "Runtime.ImportModuleError")]
)
def test_a_function_that_fails_has_status_1_and_its_error_is_the_response(function, error, invoke, event):
    assert invoke(function, "-e", event, status=1)["errorType"] == error


def test_the_event_can_come_from_standard_input(invoke, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"b": 2}'))
    assert invoke("echo", "--event", "-")["event"] == {"b": 2}


def test_keys_are_the_same_each_time(invoke, event):
    first, second = (invoke("echo", "-e", event)["environment"]["KEY"] for _ in range(2))
    assert first == second


def test_a_run_with_parameters_of_its_own_is_another_one(template, event, capsys):
    values = (([], "dev"), (["--parameter", "Stage=prod"], "prod"), (["--env", "STAGE=test"], "test"))
    with serve(template, log=None) as app:
        invoke = Invoke(template, int(app.url("").rpartition(":")[2]), capsys)
        for options, stage in values:
            assert invoke("Echo", "-e", event, *options)["environment"]["STAGE"] == stage
        assert len(app.recorder.background_invocations()) == 1


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:{port}/console", "/login", "https://example.com/", ""]
)
def test_another_program_at_the_port_is_left_alone(location, template, event, capsys):
    asked = []

    def respond(request: Request) -> Response:
        asked.append((request.method, request.target))
        return Response(302, (("location", location.format(port=program.port)),))

    program = HttpServer(respond, max_body=1_000).start()
    with closing(program):
        assert Invoke(template, program.port, capsys)("Echo", "-e", event)["environment"]["STAGE"] == "dev"
    assert asked == [("GET", "/console/")]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["Nobody", "-e", "{event}"], "Nobody; .*Echo, Odd, Broken, "),
        (["Echo"], "with -e"),
        (["-e", "{event}"], "template: Echo, Odd, "),
        (["Echo", "-e", "{folder}/missing.json"], "missing.json .*read"),
        (["Echo", "-e", "{folder}/template.yaml"], "template.yaml .*JSON"),
        (["Echo", "-e", "{event}", "--answers", "{{}}"], "with --round"),
        (["Echo", "-e", "{event}", "--round", "{event}"], "--round needs"),
        (["Echo", "-e", "-", "--round", "-"], "Only one"),
        (["Echo", "-e", "{event}", "--parameter", "Stag=prod"], r"Stage\?"),
        (["Echo", "-e", "{event}", "--env", "=x"], "variable's name"),
    ],
)
def test_what_the_user_can_correct_is_one_sentence(
    arguments, text, template, port, event, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    given = [each.format(event=event, folder=template.parent) for each in arguments]
    assert main([*given, "--template", str(template), "--port", str(port)]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("error: ")
    assert re.search(text, written.err)
