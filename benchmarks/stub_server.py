"""Serve a stub of an AWS service over HTTP with little overhead, because the measured code waits for it.

The server of `mcp_roundtrip_tools.run` parses more strictly and takes twice as long for a request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mcp_roundtrip_tools.run.http.messages import Request, Response


@contextmanager
def serve_stub(respond: Callable[[Request], Response]) -> Iterator[str]:
    """Answer GET and POST requests with `respond` until the block ends, and yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 64 * 1024  # headers and body are sent in one segment

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            reply = respond(Request(self.command, self.path, tuple(self.headers.items()), body))
            self.send_response(reply.status)
            for name, value in (*reply.headers, ("Content-Length", str(len(reply.body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = _handle

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name in the base class
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
