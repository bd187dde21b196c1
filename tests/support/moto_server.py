"""moto over HTTP, for clients other than botocore, whose requests moto does not intercept.

moto's own server needs Flask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import BotocoreStubber

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.aws_clients import REGION


@contextmanager
def serve_moto(service: str) -> Iterator[str]:
    """Serve a service of moto, whose `mock_aws` is active, and yield the URL."""

    def respond(request: Request) -> Response:
        headers = HTTPHeaders()
        for name, value in request.headers:
            headers[name] = value
        url = f"https://{service}.{REGION}.amazonaws.com{request.target}"
        answer = BotocoreStubber().process_request(
            AWSPreparedRequest(request.method, url, headers, request.body, False)
        )
        assert answer is not None, url
        status, found, body = answer
        content = body if isinstance(body, bytes) else body.encode()
        # The server states the length itself.
        sent = tuple((name, str(found[name])) for name in found if name.lower() != "content-length")
        return Response(status, sent, content)

    server = HttpServer(respond, max_body=16 * 1024 * 1024).start()
    try:
        yield server.url
    finally:
        server.close()
