"""The program sam without the second that its imports take, for tests that run it often."""

from __future__ import annotations

import atexit
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from support.interpreters import SITE
from support.sam_build import SAM

SERVER = Path(__file__).with_name("sam_server.py")

CLIENT = """\
#!{python} -IS
import json, os, socket, sys

request = {{"arguments": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ)}}
data = json.dumps(request).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    socket.send_fds(server, [len(data).to_bytes(4)], [0, 1, 2])
    server.sendall(data)
    status = server.recv(1)
sys.exit(status[0] if status else 1)
"""
"""Sends what a process has to the server, and exits as sam does."""

START_S = 60


@cache
def program() -> Path:
    """Return a program that does what sam does. Its server ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="sam-")
    path = Path(folder.name, "socket")
    server = subprocess.Popen(
        [SAM.with_name("python"), SERVER, path],
        stdin=subprocess.PIPE,
        env={"PYTHONPATH": str(SITE / "fast_yaml"), "SAM_CLI_TELEMETRY": "0"},
        start_new_session=True,  # it kills its group
    )

    def stop() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
        folder.cleanup()

    atexit.register(stop)
    end = time.monotonic() + START_S
    while not path.exists():
        assert server.poll() is None, "the server of sam ended"
        assert time.monotonic() < end, "the server of sam does not answer"
        time.sleep(0.02)
    client = Path(folder.name, "sam")
    client.write_text(CLIENT.format(python=sys.executable, path=str(path)))
    client.chmod(0o755)
    return client
