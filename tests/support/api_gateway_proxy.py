"""A forward proxy that gives hosts of API Gateway an address: that of the emulator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from support.aws_account import Cloud

NOT_FORWARDED = frozenset(
    {"connection", "content-length", "date", "host", "proxy-connection", "transfer-encoding"}
)


@contextmanager
def api_gateway_proxy(cloud: Cloud) -> Iterator[str]:
    """Run the proxy until the block ends; yield its URL, a value for HTTP_PROXY."""
    emulator = urlsplit(cloud.url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            url = urlsplit(self.path)
            api = (url.hostname or "").partition(".")[0]
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in NOT_FORWARDED
            }
            with closing(HTTPConnection(emulator)) as connection:
                path = f"/_aws/execute-api/{api}/$default{url.path}"
                connection.request(self.command, path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in NOT_FORWARDED:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = forward

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
