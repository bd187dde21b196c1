"""DynamoDB and S3 under `make run`, from ministack, a third-party emulator of AWS services.

ministack passes the contract of the task store (tests/tasks/test_store_interface.py). If it is missing, it
is installed as soon as the template declares a table or bucket. It starts at the first call, creates what the
template declares, and forgets its data at the end. For `make run` it listens on a Unix domain socket, which
programs and web pages reach only through `respond`.

It ends with the process that started it, even if that is killed: the write end of its stdin is then closed.
It inherits a socket that listens, so it loses no port, and the first request waits for the start, 0.5 s.
"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Any, Final

from mcp_roundtrip_tools.run.execution.requirements import PipError, install_packages
from mcp_roundtrip_tools.run.execution.runtime_process import PYTHON_VERSION
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault
from mcp_roundtrip_tools.template.model import Storage

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

    `variables` are its environment. `packages` is the folder that has ministack, if PYTHON has not.
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
        """Install ministack if necessary; return its folder, None if PYTHON has it. Raises MinistackError."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._preferred.with_name("ministack").is_file():  # an interrupted set-up leaves python
                return None
            if not self._folder.is_dir():
                self._install()
        return self._folder

    def _install(self) -> None:
        began_s = time.monotonic()
        self._log(f"Installing {REQUIREMENTS[0]} for tables and buckets into {self._folder} (only once) …")
        try:
            install_packages(self._folder, [sys.executable, "-m", "pip", "install", *REQUIREMENTS])
        except (PipError, OSError) as error:
            hint = ". XDG_CACHE_HOME selects another folder" if isinstance(error, OSError) else ""
            text = f"ministack, which has tables and buckets, cannot be installed: {error}{hint}"
            self._failure = MinistackError(text)
            raise self._failure from None
        self._log(f"Installed ministack in {time.monotonic() - began_s:.0f} s")


_PER_CONNECTION: Final = {
    *("connection", "content-length", "date", "expect", "keep-alive", "transfer-encoding"),
}
_TIMEOUT_S: Final = 30.0

_SIGNATURE: Final = re.compile(r"X-Amz-Signature=[0-9a-f]*&?")
"""Of a presigned URL. ministack would verify it, and does not know the credentials of functions."""


class Emulator:
    """Answers requests to DynamoDB and S3. Safe to share between threads."""

    def __init__(self, log: Callable[[str], None], installation: Installation | None = None) -> None:
        self._log = log
        self._installation = installation or Installation(log)
        self._lock = threading.Lock()
        self._storage = Storage()
        self._created: set[str] = set()
        self._folder: TemporaryDirectory[str] | None = None
        self._process: Ministack | None = None

    @property
    def is_running(self) -> bool:
        """Whether ministack runs: a request would not start it."""
        process = self._process
        return process is not None and process.is_alive

    def declare(self, storage: Storage) -> None:
        """Set the tables and buckets that must exist at the next call. Those that exist keep their data.

        Waits for the installation of ministack if there are any: a function would not wait so long.
        """
        with self._lock:
            self._storage = storage
        if storage.tables or storage.buckets:
            with suppress(MinistackError):  # the first call reports it
                self._installation.packages()

    def respond(self, request: Request) -> Response:
        """Answer one request; with 501 if ministack cannot run."""
        try:
            packages = self._installation.packages()
            with self._lock:
                path = self._start(packages)
                self._create_missing(path)
            return _send(path, request)
        except (MinistackError, OSError, http.client.HTTPException) as error:
            self._log(f"[ministack] {error}")
            return ServiceFault("NotImplemented", str(error), 501).response()

    def close(self) -> None:
        """Kill the process. Its data is lost."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
            if self._folder is not None:
                self._folder.cleanup()
            self._process = self._folder = None

    def _start(self, packages: Path | None) -> str:
        """Return the path of the socket of a running ministack. Raises MinistackError if it is missing."""
        if self._folder is None:
            # The path of a socket has at most 103 bytes on macOS.
            parent = "/tmp" if len(os.fsencode(gettempdir())) > 70 else None  # noqa: S108 - the folder is private
            self._folder = TemporaryDirectory(prefix="mcp-roundtrip-", dir=parent, ignore_cleanup_errors=True)
        path = os.path.join(self._folder.name, "ministack")
        if not self.is_running:
            self._created.clear()
            Path(path).unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(path)
                listening.listen()
                self._process = Ministack(listening, {"SERVICES": "dynamodb,s3"}, packages=packages)
        return path

    def _create_missing(self, path: str) -> None:
        """Create the tables and buckets that do not exist yet. Raises MinistackError."""
        for name in self._storage.tables.keys() - self._created:
            headers = _signed_for("dynamodb", ("x-amz-target", "DynamoDB_20120810.CreateTable"))
            body = json.dumps(_create_table_request(name, self._storage.tables[name])).encode()
            self._create(path, name, Request("POST", "/", headers, body))
        for name in set(self._storage.buckets) - self._created:
            self._create(path, name, Request("PUT", f"/{name}", _signed_for("s3")))

    def _create(self, path: str, name: str, request: Request) -> None:
        reply = _send(path, request)
        if reply.status != 200:
            raise MinistackError(f"{name} cannot be created: {reply.body.decode(errors='replace')}")
        self._created.add(name)


def _send(path: str, request: Request) -> Response:
    """Forward one request to the socket at this path."""
    target = _SIGNATURE.sub("", request.target)
    headers = {name: value for name, value in request.headers if name not in _PER_CONNECTION}
    headers["connection"] = "close"  # hypercorn keeps the descriptor of an idle connection that was closed
    with closing(_UnixConnection(path)) as connection:
        connection.request(request.method, target, request.body, headers)
        response = connection.getresponse()
        body = response.read()
    forwarded = [(name.lower(), value) for name, value in response.getheaders()]
    dropped = _PER_CONNECTION - ({"content-length"} if request.method == "HEAD" else set())
    return Response(response.status, tuple(pair for pair in forwarded if pair[0] not in dropped), body)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _create_table_request(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CreateTable request for the CloudFormation properties of a table, without its throughput."""
    request = {"TableName": name, **properties, "BillingMode": "PAY_PER_REQUEST"}
    names = ("IndexName", "KeySchema", "Projection")
    for member in request.keys() & {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"}:
        request[member] = [
            {part: index[part] for part in names if part in index} for index in request[member]
        ]
    return request


def _signed_for(service: str, *headers: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return headers that name `service` as a signature does. ministack does not verify signatures."""
    scope = f"Credential=local/20260101/us-east-1/{service}/aws4_request"
    authorization = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"
    return (("host", "localhost"), ("authorization", authorization), *headers)
