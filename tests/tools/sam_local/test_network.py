"""The Docker network ends with the command. In place of Docker runs a program that notes its commands."""

import os
import signal
import subprocess
import sys
import time

import pytest

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
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_does_not_leave_the_network_behind(tmp_path, number):
    write_application(tmp_path, ONE_FUNCTION, {"f/app.py": "", "bin/docker": DOCKER})
    (tmp_path / "bin/docker").chmod(0o755)
    program = [sys.executable, "-m", "mcp_roundtrip_tools", "sam-local"]
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    options = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}, "start_new_session": True}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, **options) as process:
        assert process.stdout is not None
        assert any("until Ctrl+C" in line for line in process.stdout)
        commands = tmp_path / "commands"
        os.killpg(process.pid, number)
        while "stops" not in commands.read_text():
            time.sleep(0.01)
        os.killpg(process.pid, number)
        assert process.wait(10) == 0
    *_, ended, removed = commands.read_text().splitlines()
    assert (ended, removed) == ("container has ended", "network rm"), (
        "Docker keeps the network of a container"
    )
