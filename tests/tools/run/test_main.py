import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcp_roundtrip_tools.__main__ import main
from mcp_roundtrip_tools.run.serving import serve
from mcp_roundtrip_tools.run.terminal.terminal import banner
from support import skips
from support.interpreters import serving
from support.sam_applications import http, write_application

TEMPLATE = """
    Parameters: {AuthMode: {Type: String}, Other: {Type: String, Default: x}}
    Resources:
      F:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          CodeUri: f
          Timeout: 20
          Environment: {Variables: {MODE: !Ref AuthMode, OTHER: !Ref Other}}
          Events: {E: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}}
    """
SOURCE = (
    "import os\ndef handler(event, context):\n    return {'mode': os.environ['MODE'], 'pid': os.getpid()}\n"
)


def command(folder, *arguments):
    template = os.fspath(folder / "template.yaml")
    return [sys.executable, "-m", "mcp_roundtrip_tools", "run", "--template", template, *arguments]


@pytest.fixture(autouse=True)
def default_of_sighup():
    """A test run under nohup ignores the signal, and so would the programs that it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_command_serves_until_it_is_stopped(tmp_path, number):
    write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    with serving(command(tmp_path, "--port", "0")) as (process, url):
        answer = http(url).json()
        assert answer["mode"] == "none"
        for _ in range(1_000):  # further signals are ignored
            process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
                break
        output = process.stdout.read()
        assert process.wait(10) == 0
    assert "AuthMode none" in output
    assert re.search(r"^\d\d:\d\d:\d\d  GET /mcp +F-1 \(new\) · [\d.]+ m?s$", output, re.MULTILINE)
    with pytest.raises(ProcessLookupError):
        os.kill(answer["pid"], 0)


def test_under_nohup_the_command_serves_on_after_its_terminal_is_closed(tmp_path):
    write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    ignoring = f"trap '' HUP && exec {shlex.join(command(tmp_path, '--port', '0'))}"
    with serving(ignoring, shell=True) as (process, url):
        process.send_signal(signal.SIGHUP)
        assert http(url).status == 200


def test_the_command_ends_when_no_program_reads_its_output(tmp_path):
    write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    arguments = command(tmp_path, "--port", "0", "--json")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["mcpUrl"]
        process.stdout.close()
        with suppress(OSError):  # it may end before it responds
            http(url)
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_cannot_be_written_is_an_error(tmp_path):
    write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command(tmp_path, "--port", "0", "--json"), stdout=full, check=False)
    assert done.returncode == 2


def test_a_small_limit_of_descriptors_is_raised(tmp_path):
    write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    usual, most = getrlimit(RLIMIT_NOFILE)
    limited = f"ulimit -Sn 256 && exec {shlex.join(command(tmp_path, '--port', '0'))}"  # as on macOS
    with ExitStack() as stack:
        stack.callback(setrlimit, RLIMIT_NOFILE, (usual, most))
        setrlimit(RLIMIT_NOFILE, (1024, most))
        _, url = stack.enter_context(serving(limited, shell=True))
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", urlsplit(url).port)))
        assert http(url).status == 200


STAND_IN = """\
from mcp_roundtrip_tools.run.http.messages import Response

def respond(request):
    print("an e-mail")
    return Response(200, (), b"{}")
"""
CALLING = "from urllib.request import urlopen\n" + SOURCE.replace(
    "    return", "    urlopen(os.environ['SERVICE_URL'])\n    return"
)
WITH_STAND_IN = f"""{TEMPLATE.rstrip()}
      Other: {{Type: AWS::Serverless::Function, Properties: {{Runtime: ruby3.3}}}}
    Metadata: {{LocalRun: {{StandIns: {{SERVICE_URL: stand_in.py}}}}}}
    """


def test_with_json_every_line_is_an_object_and_the_first_one_has_what_is_left_out(tmp_path):
    write_application(tmp_path, WITH_STAND_IN, {"f/app.py": CALLING, "stand_in.py": STAND_IN})
    arguments = command(tmp_path, "--port", "0", "--json")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        started = json.loads(process.stdout.readline())
        answer = http(started["mcpUrl"])
        request = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        others = process.stderr.read()
    assert answer.status == 200
    assert "an e-mail" in others
    assert (started["type"], request["type"], request["path"]) == ("started", "request", "/mcp")
    assert [line.partition(": ")[0] for line in started["leftOut"]] == ["Other.Runtime"]


def test_services_of_a_run_are_reached_without_the_proxy_of_a_function(tmp_path):
    write_application(tmp_path, WITH_STAND_IN, {"f/app.py": CALLING, "stand_in.py": STAND_IN})
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9"}
    with serve(tmp_path / "template.yaml", variables=proxy, parameters={"AuthMode": "none"}) as app:
        assert http(app.url()).status == 200


STORING = "import boto3\n" + SOURCE.replace(
    "    return", "    boto3.client('dynamodb').list_tables()\n    return"
)


@pytest.mark.parametrize("killed", ["make", "python"])
def test_a_killed_command_leaves_no_process_running(tmp_path, killed):
    if sys.platform != "linux":
        skips.skip(skips.LINUX, "/proc lists the child processes")
    write_application(tmp_path, TEMPLATE, {"f/app.py": STORING})
    recipe = shlex.join(command(tmp_path, "--port", "0"))
    (tmp_path / "Makefile").write_text(f"run:\n\t@exec {recipe}\n")
    make = ["make", "--directory", tmp_path, "--no-print-directory", "run"]
    with serving(make) as (process, url):
        assert http(url).status == 200
        [python] = child_processes(process.pid)
        started = child_processes(python)
        assert len(started) == 2  # the function, and ministack, which answered it
        ends = [os.pidfd_open(pid) for pid in (python, *started)]
        os.kill(process.pid if killed == "make" else python, signal.SIGKILL)
        for end in ends:
            assert select.select([end], [], [], 10)[0], "a process is still running"
            os.close(end)


def child_processes(pid):
    """Return the child processes of a process, whichever of its threads has started them."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
            if f"\nPPid:\t{pid}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ["--parameter", "Nobody=1"],
        ["--parameter", "nonsense"],
        ["--env", "NO_SUCH_VARIABLE"],
        ["--env", "=value"],
        ["--port", "abc"],
        ["--port", "65536"],
        ["--port", "-1"],
        ["--port", "{taken}"],
        ["--retry-delay-scale", "fast"],
    ],
)
def test_an_invalid_parameter_ends_with_exit_status_2(tmp_path, arguments, capsys, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = [each.format(taken=taken.getsockname()[1]) for each in arguments]
        _, _, _, *options = command(tmp_path, *given)
        try:
            status: Any = main(options)
        except SystemExit as end:  # of argparse
            status = end.code
    assert status == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert given[1].partition("=")[0] in line


def test_the_banner_shows_how_a_client_connects(running, monkeypatch):
    url = running.app.url("/echo")
    of_make = f"make call PORT={urlsplit(url).port}"
    for level, command in (("1", of_make), (None, f"mcp-roundtrip call --url {url}")):
        monkeypatch.setenv("MAKELEVEL", level) if level else monkeypatch.delenv("MAKELEVEL", raising=False)
        assert banner(running.app).splitlines()[3].split("  ")[2] == command
    text = banner(running.app)
    assert text.splitlines()[1].split()[:2] == ["console", running.app.url("/")]
    assert text.splitlines()[2].split()[:2] == ["endpoint", url]
    assert "make run USER=" in banner(running.app, anonymous=True)
    assert f'"url": "{url}"' in text
    assert '"type": "http"' in text
    assert "AuthMode" not in text


def test_an_authorizer_that_is_not_emulated_is_named_at_the_start(tmp_path):
    template = TEMPLATE.replace("MODE: !Ref AuthMode", "MODE: x, MCP_AUTH_MODE: !Ref AuthMode")
    path = write_application(tmp_path, template, {"f/app.py": SOURCE})
    for mode, is_named in {"none": False, "iam": True}.items():
        with serve(path, parameters={"AuthMode": mode}, log=lambda line: None) as app:
            assert (" 401: " in banner(app)) is is_named, mode  # a port may have these digits
