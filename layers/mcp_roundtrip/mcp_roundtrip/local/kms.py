"""The HTTP face of `FakeKms`: AWS JSON 1.1 on 127.0.0.1, for any AWS SDK that is given its endpoint URL."""

from __future__ import annotations

import base64
import binascii
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mcp_roundtrip.local.fake_kms import MEMBERS, OPERATIONS, FakeKms
from mcp_roundtrip.local.kms_key import KmsFault

__all__ = ["FakeKms", "KmsEndpoint", "KmsFault", "serve"]

MAX_BODY = 1_048_576
"""The most bytes of a request's body; the largest request the operations take is far below."""


@dataclass(frozen=True, slots=True)
class KmsEndpoint:
    """Where a running `FakeKms` listens: hand `endpoint_url` to an SDK client or to AWS_ENDPOINT_URL_KMS."""

    endpoint_url: str


@contextmanager
def serve(kms: FakeKms, port: int = 0) -> Iterator[KmsEndpoint]:
    """Serve `kms` on 127.0.0.1 until the block ends; port 0 takes a free one. OSError if it is in use."""
    with _Server(("127.0.0.1", port), _Handler) as server:
        server.kms = kms
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="fake-kms", daemon=True)
        thread.start()
        try:
            yield KmsEndpoint(f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


def answer(kms: FakeKms, target: str, body: bytes) -> dict[str, Any]:
    """Perform the operation that the header X-Amz-Target names. Raises KmsFault."""
    service, _, operation = target.partition(".")
    if service != "TrentService" or operation not in OPERATIONS:
        raise KmsFault("UnknownOperationException", f"{target!r} is not an operation of this stand-in")
    try:
        members = json.loads(body or b"{}")
    except ValueError:
        raise KmsFault("SerializationException", "the body is not JSON") from None
    if not isinstance(members, dict):
        raise KmsFault("SerializationException", "the body is not a JSON object")
    result: dict[str, Any] = getattr(kms, operation)(
        **{name: _decoded(name, members[name]) for name in members}
    )
    return {name: _encoded(value) for name, value in result.items()}


def _decoded(name: str, value: Any) -> Any:
    if MEMBERS.get(name) is not bytes or not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise KmsFault("SerializationException", f"{name} is not Base64") from None


def _encoded(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


class _Server(ThreadingHTTPServer):
    kms: FakeKms


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Without it the body waits for the acknowledgement of the headers, 40 ms on Linux.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True  # the body stays unread
            self._send(
                400, {"__type": "SerializationException", "message": f"at most {MAX_BODY} bytes, stated"}
            )
            return
        body = self.rfile.read(int(length))
        if not self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 "):
            self._send(
                400, {"__type": "MissingAuthenticationTokenException", "message": "the request is not signed"}
            )
            return
        try:
            self._send(200, answer(self.server.kms, self.headers.get("X-Amz-Target", ""), body))
        except KmsFault as fault:
            self._send(400, {"__type": fault.code, "message": fault.message})

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-amzn-RequestId", str(uuid.uuid4()))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: `FakeKms.calls` counts."""
