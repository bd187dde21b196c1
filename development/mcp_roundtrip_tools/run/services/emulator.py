"""DynamoDB and S3 under `make run`, from ministack.

ministack passes the contract of the task store (tests/tasks/test_store.py) and knows every operation of both
services. If it is missing, it is installed as soon as the template declares a table or bucket. It starts at
the first call, creates the tables and buckets that the template declares, and forgets its data at the end. It
listens on a Unix domain socket, so that programs and web pages reach it only through `respond`.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.faults import ServiceFault
from mcp_roundtrip_tools.run.services.ministack import Installation, Ministack, MinistackError
from mcp_roundtrip_tools.template.model import Storage

_PER_CONNECTION: Final = {
    *("connection", "content-length", "date", "expect", "keep-alive", "transfer-encoding"),
}
_TIMEOUT_S: Final = 30.0


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
            self._folder = TemporaryDirectory(prefix="mcp-roundtrip-", ignore_cleanup_errors=True)
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
    headers = {name: value for name, value in request.headers if name not in _PER_CONNECTION}
    with closing(_UnixConnection(path)) as connection:
        connection.request(request.method, request.target, request.body, headers)
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
