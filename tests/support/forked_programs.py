"""Python programs without the second that their imports take, for tests that run them often."""

import atexit
import pkgutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import mcp_roundtrip
from support.interpreters import SITE
from support.sam_build import SAM

SERVER = Path(__file__).with_name("fork_server.py")

CLIENT = """\
#!{python} -IS
import os, socket, sys

arguments = {first!r} + sys.argv[1:]
request = {{"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}}
data = repr(request).encode()  # importing json takes a third of the time
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    socket.send_fds(server, [len(data).to_bytes(4)], [0, 1, 2])
    server.sendall(data)
    status = server.recv(1)
sys.exit(status[0] if status else 1)
"""
"""Sends what a process has to the server, and exits as the program does."""

START_S = 60


@cache
def sam() -> Path:
    """Return a program that does what sam does. Its server ends with this process."""
    python = python_of_sam()
    return _client(python.with_name("sam"), python.with_name("socket"), "-m", "samcli")


@cache
def python_of_sam() -> Path:
    """Return the interpreter of sam. Its server ends with this process."""
    commands = [f"samcli.commands.{each}.command" for each in ("build", "deploy", "package")]
    return _serve(
        *commands, "samcli.lib.translate.sam_template_validator", interpreter=SAM.with_name("python")
    )


@cache
def python_of_deploy() -> Path:
    """Return an interpreter for `-m mcp_roundtrip_tools.deploy`. Its server ends with this process."""
    return _serve("mcp_roundtrip_tools.deploy.deployment", "botocore.client")


@cache
def python_of_calls() -> Path:
    """Return an interpreter for `-m mcp_roundtrip_tools`. Its server has the imports of `run` and `call`.

    The server ends with this process.
    """
    return _serve("mcp_roundtrip_tools.call.command", "mcp_roundtrip_tools.run.command")


def install(folder: Path, python: Path) -> None:
    """Give an application a virtual environment with the programs of the tests, and this interpreter."""
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(python)
    for name, module, interpreter in (
        ("mcp-roundtrip", "mcp_roundtrip_tools", programs / "python"),
        ("pytest", "pytest", sys.executable),
    ):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{interpreter}" -m {module} "$@"\n')
        program.chmod(0o755)
    for mark in (".local", ".installed"):
        (programs.parent / mark).touch()


@cache
def python_of_functions(site: str = "") -> str:
    """Return an interpreter for the functions of an application, and for their catalog.

    Its server ends with this process.

    An execution environment starts in a tenth of its CPU time. With `site`, it begins with the module
    `site/<site>/sitecustomize.py`.
    """
    package = pkgutil.walk_packages(mcp_roundtrip.__path__, "mcp_roundtrip.")
    # What the runtime's client imports, except its C++ part, which reads its address when it is imported.
    runtime = ["awslambdaric.lambda_runtime_log_utils", "awslambdaric.lambda_runtime_marshaller"]
    modules = [*(each.name for each in package), *runtime, "mcp_roundtrip_tools.catalog.catalog"]
    return str(_serve(*modules, site=site))


def _serve(*modules: str, interpreter: str | Path = sys.executable, site: str = "fast_yaml") -> Path:
    """Start a server that has imported modules, and return an interpreter that runs in a fork of it.

    The server starts with the module in `site`.
    """
    folder = tempfile.TemporaryDirectory(prefix="python-")
    path = Path(folder.name, "socket")
    server = subprocess.Popen(
        [interpreter, SERVER, path, *modules],
        stdin=subprocess.PIPE,
        env={"PYTHONPATH": str(SITE / site), "SAM_CLI_TELEMETRY": "0"},
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
        assert server.poll() is None, f"the server of {modules[0]} ended"
        assert time.monotonic() < end, f"the server of {modules[0]} does not answer"
        time.sleep(0.02)
    return _client(Path(folder.name, "python"), path)


def _client(program: Path, server: Path, *first: str) -> Path:
    """Write a client of a server. `first` are the arguments that precede those of the program."""
    program.write_text(CLIENT.format(python=sys.executable, path=str(server), first=list(first)))
    program.chmod(0o755)
    return program
