"""ministack, a third-party emulator of AWS services: its installation, and a process of its own.

It ends with the process that started it, even if that is killed: the write end of its stdin is then closed.
It inherits a socket that listens, so it can lose no port to another process, and the first request waits for
the start, which takes about 0.5 s.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from mcp_roundtrip_tools.run.execution.environment import PYTHON_VERSION
from mcp_roundtrip_tools.run.execution.requirements import PipError, install_packages

PYTHON: Final = Path(sys.prefix).with_name(".venv-ministack") / "bin/python"
"""The interpreter that has ministack, in its own virtual environment because ministack pins botocore."""

APP: Final = "ministack.app:app"
"""ministack's ASGI application."""

START_S: Final = 30
"""Longest time in seconds that a start may take; without bytecode or on a busy computer it takes long."""

_VARIABLES: Final = {
    "IOT_MTLS_ENABLED": "0",  # otherwise ministack also listens on 0.0.0.0:8883
    "LOG_LEVEL": "WARNING",
}

_OPTIONS: Final = ("--workers", "0", "--keep-alive", "3600")
"""By default hypercorn closes idle connections after 5 s, and may lose a request that a client just sends."""

_PROGRAM: Final = """
import os, signal, sys, threading
def end_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=end_with_parent, daemon=True).start()
from hypercorn.__main__ import main
sys.exit(main())
"""


class MinistackError(Exception):
    """ministack is not installed or did not start; the message says what to do."""


class Ministack:
    """A running ministack, which serves `listening`. Raises MinistackError if it is not installed.

    `variables` are its environment, such as the `SERVICES` to run. `app` is the ASGI application. `packages`
    is the folder that has ministack, if PYTHON has not.
    """

    def __init__(
        self,
        listening: socket.socket,
        variables: Mapping[str, str],
        *,
        app: str = APP,
        packages: Path | None = None,
        output: IO[bytes] | int = subprocess.DEVNULL,
    ) -> None:
        python = PYTHON if packages is None else Path(sys.executable)
        if not python.is_file():
            raise MinistackError(f"ministack is not installed: there is no {python}; `make test` installs it")
        descriptor = listening.fileno()
        self._process = subprocess.Popen(  # noqa: S603 - the interpreter is the caller's choice
            [python, "-Pc", _PROGRAM, *_OPTIONS, "--bind", f"fd://{descriptor}", app],
            pass_fds=[descriptor],
            env={**_VARIABLES, **({} if packages is None else {"PYTHONPATH": str(packages)}), **variables},
            stdin=subprocess.PIPE,  # never written to: see above
            stdout=output,
            stderr=output,
            start_new_session=True,  # its own process group, so that child processes are killed with it
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process and its child processes. Its data is lost."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@contextmanager
def serve_ministack(
    variables: Mapping[str, str], *, app: str = APP, log: Path | None = None
) -> Iterator[str]:
    """Run ministack on a free port of 127.0.0.1 until the block ends; yield its endpoint URL.

    `log` is the file for its output. Raises MinistackError with the output if it does not start.
    """
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listening:
        written, port = log or Path(folder, "log"), listening.getsockname()[1]
        with written.open("wb") as output:
            environment = {"GATEWAY_PORT": str(port), **variables}
            process = Ministack(listening, environment, app=app, output=output)
        listening.close()  # otherwise requests would block if ministack has exited
        try:
            url = f"http://127.0.0.1:{port}"
            _await_health(url, written)
            yield url
        finally:
            process.kill()


def _await_health(url: str, log: Path) -> None:
    try:
        urllib.request.urlopen(f"{url}/_ministack/health", timeout=START_S).close()  # noqa: S310 - it is http
    except OSError as error:
        output = log.read_text(errors="replace")[-2_000:]
        raise MinistackError(f"ministack did not start ({error}):\n{output}") from error


REQUIREMENTS: Final = ("ministack==1.5.33", "cryptography")
"""What DynamoDB and S3 need: a part of MINISTACK_PIN in the Makefile."""


def cache_folder() -> Path:
    """Return the folder of the installation for this Python in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "mcp-roundtrip", f"{REQUIREMENTS[0].replace('==', '-')}-packages-{PYTHON_VERSION}")


class Installation:
    """Finds ministack, and installs it once if there is none."""

    def __init__(
        self, log: Callable[[str], None], folder: Path | None = None, preferred: Path = PYTHON
    ) -> None:
        self._log = log
        self._folder = folder or cache_folder()
        self._preferred = preferred
        self._lock = threading.Lock()
        self._failure: MinistackError | None = None

    def packages(self) -> Path | None:
        """Return the folder that has ministack, after an installation if necessary; None if PYTHON has it.

        Raises MinistackError.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._preferred.is_file():
                return None
            if not self._folder.is_dir():
                self._install()
        return self._folder

    def _install(self) -> None:
        began_s = time.monotonic()
        self._log(f"Installing {REQUIREMENTS[0]} for tables and buckets into {self._folder} (only once) …")
        try:
            install_packages(self._folder, [sys.executable, "-m", "pip", "install", *REQUIREMENTS])
        except PipError as error:
            text = f"ministack, which has tables and buckets, cannot be installed: {error}"
            self._failure = MinistackError(text)
            raise self._failure from None
        self._log(f"Installed ministack in {time.monotonic() - began_s:.0f} s")
