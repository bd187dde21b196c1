"""The Docker network ends with the command. In place of Docker runs a program that notes its commands."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from mcp_roundtrip_tools.sam_local.command import live_events, next_command
from mcp_roundtrip_tools.template.model import TemplateError
from support.sam_applications import ONE_FUNCTION, write_application

DOCKER = r"""#!/bin/sh
echo "$1 $2" >> commands
if [ "$1" = run ]; then
    printf '\0\0\0\0\0\0\0\0\0\0'  # the container listens
    cat > /dev/null
    echo "container stops" >> commands
    sleep 0.3
    echo "container has ended" >> commands
fi
if [ "$2" = rm ]; then
    echo "network has active endpoints" >&2
    exit 1
fi
"""


def test_a_second_signal_does_not_leave_the_network_behind(tmp_path):
    """run/test_main.py has the other signals."""
    earlier = "events/live/f/call.2.json"
    write_application(tmp_path, ONE_FUNCTION, {"f/app.py": "", "bin/docker": DOCKER, earlier: "{}"})
    (tmp_path / "bin/docker").chmod(0o755)
    program = [sys.executable, "-m", "mcp_roundtrip_tools", "sam-local"]
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    options = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}, "start_new_session": True}
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(f"in {tmp_path}, until Ctrl+C" in line for line in process.stdout)
        commands = tmp_path / "commands"
        os.killpg(process.pid, signal.SIGTERM)
        while "stops" not in commands.read_text():
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(10) == 0
        assert "has active endpoints" in process.stderr.read(), "what keeps the network is reported"
        assert "http://127.0.0.1:" in process.stdout.read(), "the endpoint, for tasks"
    assert not (tmp_path / earlier).exists(), "its keys are gone"
    *_, ended, removed = commands.read_text().splitlines()
    assert (ended, removed) == ("container has ended", "network rm"), (
        "Docker keeps the network of a container"
    )


FUNCTIONS = {"orders": "OrdersFunction", "weather": "WeatherFunction"}
OPTIONS = ["--env-vars", "events/live/env.json", "--docker-network", "mcp-1", "--region", "us-east-1"]
"""The tables are in one Region, and the person may have another."""


def commands(*written):
    lines = next_command(written, FUNCTIONS.__getitem__, "mcp-1", Path("/shop")).splitlines()
    return [line.split()[3:] for line in lines if "local invoke" in line]


def test_the_first_round_of_an_event_and_the_second_are_named():
    assert commands("live/weather/alb/call.2.json", "live/orders/a.2.json", "live/weather/call.2.json") == [
        ["WeatherFunction", "-e", "events/weather/call.json", *OPTIONS],
        ["WeatherFunction", "-e", "events/live/weather/call.2.json", *OPTIONS],
    ]
    assert commands() == [["FUNCTION", "-e", "EVENT", *OPTIONS]], "without an event that asks"


def call(name):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}


def test_an_event_that_cannot_be_played_is_named_and_left_out(tmp_path, capsys):
    def invoke(folder, event):
        print("E-mail to grace@example.com")
        if folder == "gone":
            raise TemplateError("the template has no function gone")
        asked = {event["params"]["name"]: {"method": "roots/list"}}
        asks = {"inputRequests": asked, "resultType": "input_required"}
        return None if "inputResponses" in event["params"] else {"jsonrpc": "2.0", "id": 1, "result": asks}

    calls = {f"{place}/call.json": json.dumps(call(place)) for place in ("f", "gone", "refused")}
    for file, text in {**calls, "f/broken.json": "{", "answers.json": '{"refused": "no object"}'}.items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert [*live_events(invoke, tmp_path)] == ["live/f/call.2.json"]
    printed = capsys.readouterr()
    assert printed.out == "", "what stand-ins print"
    named = [line.partition(" is left out: ")[0] for line in printed.err.splitlines()]
    assert named == [f"{tmp_path}/{each}.json" for each in ("f/broken", "gone/call", "refused/call")]
